"""``weft verify``: judge an algorithm in any known format."""

from __future__ import annotations

import click

from weft.cli.inputs import InputOptions, input_options
from weft.cli.options import NetworkOptions, topology_option
from weft.cli.printing import json_option, say_verdict


@click.command()
@input_options("IN")
@topology_option("Also judge it as it runs on this network: mesh:8x8, h100:4, a file.")
@json_option
def verify(source: InputOptions, network: NetworkOptions, as_json: bool) -> None:
    """Judge the algorithm in IN: exit code 0 if right, 1 and the violation if not.

    2 if it cannot be read, 3 if its messages can be read in several ways and none is right.

    IN is a folder of Chakra execution traces, or a file in another format that Weft knows; it is
    recognised by what is in it. Traces that do not come from Weft, and CSV tables, need
    --collective.

    With --topology its rows are also routed over that network, as `weft simulate` does it, and
    judged with their times there: NPUs that are not there, and rows without a way, are named.
    """
    from weft.api import verify as judge
    from weft.cli import progress
    from weft.judge import Verdict
    from weft.progress import Tracker

    hints = source.hints()

    def work(report: Tracker) -> tuple[Verdict, str]:
        topology = network.load_if_named()
        verdict = judge(source.path, topology, hints=hints, kind=source.kind, progress=report)
        return verdict, "" if topology is None else f" on {topology.title}"

    verdict, where = progress.run("reading", work)
    say_verdict(source.path, verdict, where, as_json=as_json)
    if not verdict:
        raise click.exceptions.Exit(1)
