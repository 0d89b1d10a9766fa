"""``weft topo``: look at a network before using it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weft.cli.options import (
    FileOptions,
    NetworkOptions,
    file_options,
    option,
    topology_argument,
)
from weft.cli.printing import json_option, say, say_json

if TYPE_CHECKING:
    from weft.progress import Tracker
    from weft.topology.summary import TopologySummary


_form_option = option(
    "--to FORM",
    "What -o writes: weft, a file of Weft's own, or infragraph.",
    name="form",
    default="weft",
)


@click.group()
def topo() -> None:
    """Look at networks."""


@topo.command()
@topology_argument("SPEC")
@option("-o, --output FILE", "Write the network as .yaml or .json.")
@_form_option
@json_option
def show(network: NetworkOptions, output: str | None, form: str, as_json: bool) -> None:
    """Show the facts of a network: SPEC is like mesh:8x8, h100:4, or a topology file."""
    from weft.cli import progress
    from weft.judge.automorphisms import symmetry_words
    from weft.topology import Topology
    from weft.topology.files import check_topology_file, write_topology
    from weft.topology.summary import summarize

    if output is not None:
        check_topology_file(output, form)

    def work(_report: Tracker) -> tuple[Topology, TopologySummary, str]:
        topology = network.load()
        return topology, summarize(topology), symmetry_words(topology)

    topology, summary, symmetry = progress.run("looking at the network", work)
    if output is not None:
        write_topology(topology, output, form)
    if as_json:
        said = {"notes": list(topology.notes)} if topology.notes else {}
        say_json({**summary.to_dict(), "symmetry": symmetry, **said})
    else:
        from weft.cli.tables import print_facts
        from weft.topology.links import titled

        print_facts(titled(summary.name, summary.changes), _rows(summary, symmetry))
        for note in topology.notes:
            say(note)


@topo.command()
@click.argument("hosts", metavar="[NAMES=]FILE...", nargs=-1, required=True)
@option(
    "--fabric FILE|SPEC",
    "What joins the hosts: a file, or a network such as clos:8x4x2.",
    required=True,
)
@option("--count N", "How many hosts; needed for one file and a fabric that is a spec.", type=int)
@option(
    "--rails",
    "Ports of a fabric that is a spec go to the first adapter of each host, then to the second.",
    is_flag=True,
)
@option(
    "--adapters OLD=NEW[,...]",
    "What adapters are called in the fabric, and in the hosts' files: HCA-1=mlx5_0,HCA-2=mlx5_1. "
    "For a fabric that is a spec: those of each host that hang on it, in order: mlx5_0,mlx5_1.",
)
@file_options
@option("-o, --output FILE", "Write the network as .yaml or .json.")
@_form_option
@json_option
def join(
    hosts: tuple[str, ...],
    fabric: str,
    count: int | None,
    rails: bool,
    adapters: str | None,
    said: FileOptions,
    output: str | None,
    form: str,
    as_json: bool,
) -> None:
    """Join files of hosts, and of the fabric between them, to one cluster.

    FILE is of one host, such as an NCCL topology dump. NAMES is its name in the fabric, or a
    pattern such as 'dgx-*' for all hosts that are like it; without, it is found by the GUIDs of
    its adapters or by the name of the file.

    \b
    Examples:
      weft topo join 'dgx-*=dgx.xml' --fabric ibnetdiscover.txt -o cluster.yaml
      weft topo join dgx-01.xml dgx-02.xml --fabric ibnetdiscover.txt -o cluster.yaml
      weft topo join dgx.xml --count 32 --fabric leaf-spine:32x8x8 --rails -o cluster.yaml
    """  # noqa: D301 - click reads the control character
    from weft.cli import progress
    from weft.topology.files import check_topology_file, write_topology
    from weft.topology.join import Cluster, join_files

    if output is not None:
        check_topology_file(output, form)

    def work(_report: Tracker) -> Cluster:
        return join_files(hosts, fabric, count=count, rails=rails, adapters=adapters, **vars(said))

    cluster = progress.run("joining", work)
    if output is not None:
        write_topology(cluster.topology, output, form)
    if as_json:
        say_json(cluster.to_dict())
    else:
        from weft.cli.tables import print_facts

        print_facts(cluster.topology.name, cluster.rows())
        for note in cluster.topology.notes:
            say(note)


@topo.command()
@topology_argument("FILE|SPEC")
@json_option
def check(network: NetworkOptions, as_json: bool) -> None:
    """Say what looks wrong in a network, the worst first, and what it costs.

    A GPU with fewer NVLinks than its peers, a link at a lower width or speed than its siblings, a
    missing rail or uplink, a pair that differs by direction, an oversubscribed level, a part that
    nothing joins. The cost is that of the lower bounds of All-Reduce and All-to-All of 1 GiB,
    against the same network without the fault. The exit code is 1 if something looks wrong.

    \b
    Examples:
      weft topo check nccl-topo.xml
      weft topo check ibnetdiscover.txt
      weft topo check cluster.yaml
    """  # noqa: D301 - click reads the control character
    from weft import health
    from weft.cli import progress

    def work(_report: Tracker) -> health.Checkup:
        return health.check(network.spec or "", **network.said)

    found = progress.run("checking", work)
    if as_json:
        say_json(found.to_dict())
    else:
        for line in found.lines():
            say(line)
    if not found:
        raise click.exceptions.Exit(1)


@topo.command("list")
@json_option
def list_kinds(as_json: bool) -> None:
    """List the kinds of networks that have a name, those that others added too."""
    from weft.cli.tables import print_facts
    from weft.topology import TOPOLOGIES

    header = ("kind", "example", "what it is")
    kinds = [(kind.name, kind.example, kind.summary) for kind in TOPOLOGIES.values()]
    if as_json:
        names = ("name", "example", "summary")
        say_json({"topologies": [dict(zip(names, kind, strict=True)) for kind in kinds]})
    else:
        print_facts(None, kinds, header)


def _rows(summary: TopologySummary, symmetry: str) -> list[tuple[str, str]]:
    from weft.units import format_bandwidth, format_size, format_time

    rows = [
        ("NPUs", str(summary.npus)),
        ("switches", str(summary.switches)),
        ("directed links", str(summary.links)),
        ("diameter", _diameter(summary)),
    ]
    if summary.removed:
        rows.insert(1, ("removed NPUs", ", ".join(map(str, summary.removed))))
    if summary.bisection is not None:
        label = "bisection" if summary.bisection_exact else "upper bound on bisection"
        rows.append((label, f"{format_bandwidth(summary.bisection)} each way"))
    ingress = dict.fromkeys(map(format_bandwidth, (summary.ingress_min, summary.ingress_max)))
    rows.append(("into each NPU", " to ".join(ingress)))
    rows.append(("symmetry", symmetry))
    for speed in summary.speeds:
        pair = f"{format_bandwidth(speed.bandwidth)}, {format_time(speed.latency)}"
        rows.append(("link speed", f"{pair} ({speed.links} links)"))
    for size, switches in summary.buffers:
        rows.append(("switch buffer", f"{format_size(size)} ({switches} switches)"))
    if summary.copying:
        rows.append(("multicast", f"{summary.copying} of {summary.switches} switches"))
    if summary.adding:
        rows.append(("adding", f"{summary.adding} of {summary.switches} switches"))
    return rows


def _diameter(summary: TopologySummary) -> str:
    if summary.unreachable is not None:
        return "none: NPU {} cannot reach NPU {}".format(*summary.unreachable)
    least = "" if summary.diameter_exact else "at least "
    return f"{least}{summary.diameter} link{'s' * (summary.diameter != 1)}"
