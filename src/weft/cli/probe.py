"""``weft probe``: measure the network that ranks are on, and write it as a topology."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from weft.cli.options import NetworkOptions, check_given, option, topology_option
from weft.cli.printing import json_option, say, say_json
from weft.cli.running import Where, where_options
from weft.errors import InputError, WeftError

if TYPE_CHECKING:
    from weft.progress import Tracker
    from weft.runtime import Communicator, Probed, Wanted

_MOST_LINKS = 24  # that are shown


@click.command()
@topology_option("Keep the links and switches of this network, and measure their rates and α.")
@where_options
@option("--time TIME", "How long it may take, roughly.", default="10s")
@option("--repeats N", "How often each measurement is made; the median counts.", default=5)
@option(
    "--scale FACTOR",
    "Links have so much of the bandwidth to be written: weft lab.",
    default=1.0,
    envvar="WEFT_SCALE",
)
@option("-o, --output FILE", "Write the network as .yaml or .json.")
@json_option
def probe(
    network: NetworkOptions,
    where: Where,
    time: str,
    repeats: int,
    scale: float,
    output: str | None,
    *,
    as_json: bool,
) -> None:
    """Measure α and β between ranks, and write the network that they are on.

    Pairs of ranks that share nothing are measured at once, then those that share a link together.
    Without --topology it is found what joins the ranks, as far as that can be told: links of their
    own, ports of a switch, or boxes behind NICs. Without --rank and mpiexec, --ranks says how many
    processes of this machine are measured.

    \b
    Examples:
      weft probe --ranks 4 -o machine.yaml
      mpiexec -n 8 weft probe --topology switch:4*switch:2 -o cluster.yaml
      weft lab mesh:3x3 --bandwidth 50Mbit/s -- weft probe -o probed.yaml
    """  # noqa: D301 - click reads the control character
    from weft.cli import progress
    from weft.cli.run import failed
    from weft.runtime import RunError, Wanted
    from weft.units import PS_PER_US, parse_latency

    check_given(output, what="file")
    seconds = parse_latency(time, "time") / PS_PER_US / 1e6
    wanted = Wanted(None if network.spec is None else network.load(), seconds, repeats, scale)
    try:
        found = progress.run("probing", lambda report: _found(where, wanted, output, report))
    except RunError as error:
        raise failed(error) from None
    if found is None:
        return  # another rank prints
    if as_json:
        say_json({**where.to_dict(), "scale": scale, "output": output, **found.to_dict()})
    else:
        _print(found, output)


def _found(where: Where, wanted: Wanted, output: str | None, report: Tracker) -> Probed | None:
    """Measure and write; None where another rank has the results."""
    from weft.runtime import probe as probe_ranks
    from weft.topology.files import check_topology_file, write_topology

    def check() -> None:
        if output is not None:
            check_topology_file(output)

    def write(found: Probed) -> None:
        if output is not None:
            write_topology(found.topology, output)

    if where.kind != "mpi" and where.rank is None:
        check()
        found = _found_locally(where, wanted, report)
        write(found)
        return found
    where.check()
    with where.communicator() as communicator:
        wrong = _by_rank_0(communicator, check)
        if not wrong:
            found = probe_ranks(communicator, wanted, report)
            wrong = _by_rank_0(communicator, lambda: write(found))
    if wrong:
        raise InputError(wrong)
    return found if communicator.rank == 0 else None


def _found_locally(where: Where, wanted: Wanted, report: Tracker) -> Probed:
    from weft.runtime import local
    from weft.runtime import probe as probe_ranks

    ranks = where.ranks
    if ranks is None and wanted.topology is not None:
        ranks = len(wanted.topology.members)
    if ranks is None:
        raise InputError("--ranks or --topology says how many ranks are started; give one of them")
    replace(where, ranks=None).check()
    report.enter("starting ranks")
    with local(ranks, where.kind, timeout_s=where.timeout) as group:
        report.enter("measuring")
        found: Probed = group.run(probe_ranks, wanted)[0]
        return found


def _by_rank_0(communicator: Communicator, work: Callable[[], None]) -> str:
    """Let rank 0 do it; all hear what went wrong, and leave the communicator before they say it."""
    said = ""
    if communicator.rank == 0:
        try:
            work()
        except WeftError as error:
            said = str(error)
    return communicator.exchange(said.encode())[0].decode()


def _print(found: Probed, output: str | None) -> None:
    from weft.cli.tables import print_rows, shown_time
    from weft.units import format_bandwidth

    links = found.to_dict()["links"]
    rows = [
        [
            one["link_name"],
            ("at least " if one["at_least"] else "")
            + format_bandwidth(one["bandwidth_GBps"] * 1e9),
            "-" if one["spread"] is None else f"{one['spread']:.1%}",
            shown_time(one["latency_us"]),
        ]
        for one in links[:_MOST_LINKS]
    ]
    print_rows(
        f"{found.topology.title}: {found.structure}",
        ("link", "bandwidth", "", "spread", "α"),
        rows,
        more=len(links) - len(rows),
    )
    for words, measured, expected in found.checks:
        say(
            f"{words} at once: {format_bandwidth(measured)}, {measured / expected:.2f} of what "
            "its links carry"
        )
    for doubt in found.doubts:
        say(doubt)
    if output is not None:
        say(f"network in {output}")
