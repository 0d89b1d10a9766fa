"""Options that say what a file does not: of which collective, among whom, how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from weft.cli.options import Decorator, gathered, option

if TYPE_CHECKING:
    from weft.formats import Hints

MOST_NPUS = 1 << 24  # the readers know how many there are; this only bounds a range


@dataclass(frozen=True)
class InputOptions:
    """A file to read, and what the command line says about it."""

    path: str
    kind: str | None
    collective: str | None
    size: str | None
    chunks: int | None
    group: str | None
    root: int | None
    pattern: str | None

    def hints(self) -> Hints:
        from weft.collective import parse_group
        from weft.collective.files import load_pattern
        from weft.errors import InputError
        from weft.formats import Hints
        from weft.units import parse_size

        if self.chunks is not None and self.chunks < 1:
            raise InputError(f"--chunks is {self.chunks}; expected 1 or more")
        group = None if self.group is None else parse_group(self.group, MOST_NPUS)
        ranks = MOST_NPUS if group is None else len(group)
        return Hints(
            self.collective,
            None if self.size is None else parse_size(self.size),
            self.chunks,
            group,
            self.root,
            None if self.pattern is None else load_pattern(self.pattern, ranks),
        )


def input_options(metavar: str) -> Decorator:
    """Add a file to read and options for what it may not say; the command gets them as `source`."""
    return gathered(
        "source",
        InputOptions,
        click.argument("path", metavar=metavar),
        option(
            "--from FORMAT",
            "Its format, instead of finding out, such as chakra, msccl or table.",
            name="kind",
        ),
        option("--collective NAME", "Which collective it is, if it does not say so."),
        option("--size SIZE", "Largest buffer on an NPU, if it does not say."),
        option("--chunks K", "Chunks each share is cut in.", type=int),
        option("--group NPUS", "Who takes part, in order of rank; all by default."),
        option("--root NPU", "For rooted patterns.", type=int),
        option("--pattern FILE", "For custom: a YAML or JSON list of moves."),
    )
