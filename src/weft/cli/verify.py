"""``weft verify``: judge an algorithm in any known format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weft.cli.inputs import InputOptions, input_options
from weft.cli.printing import json_option, say, say_json

if TYPE_CHECKING:
    from weft._core import Progress
    from weft.verify import Verdict


@click.command()
@input_options("IN")
@json_option
def verify(source: InputOptions, as_json: bool) -> None:
    """Judge the algorithm in IN: exit code 0 if right, 1 and the violation if not.

    2 if it cannot be read, 3 if its messages can be read in several ways and none is right.

    IN is a folder of Chakra execution traces, or a file in another format that Weft knows; it is
    recognised by what is in it. Traces that do not come from Weft need --collective.
    """
    from weft.cli import progress
    from weft.formats import read

    hints = source.hints()

    def work(report: Progress) -> Verdict:
        return read(source.path, hints, kind=source.kind).judged(report)

    verdict = progress.run("reading", work)
    if as_json:
        say_json({"path": source.path, **verdict.to_dict()})
    else:
        say(f"{source.path}: {'verified' if verdict else verdict.violation}")
    if not verdict:
        raise click.exceptions.Exit(1)
