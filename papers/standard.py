"""The workflow of the standard representation: producers and consumers that meet in Chakra."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from papers.convert import conversion, rings
from papers.figures import Bars
from papers.programs import PROGRAMS
from papers.report import VERIFIED, Experiment, Paper, Setup, Table
from weft import load
from weft.algorithm import Algorithm
from weft.engine import simulate
from weft.export.astra_sim import export
from weft.formats import Hints, read, write
from weft.judge import verify
from weft.replay import simulate_astra_sim, simulate_traces
from weft.topology import Topology, load_topology

DOORS = ("language", "MSCCL-XML", "language > Chakra", "MSCCL-XML > Chakra")
NETWORKS = {
    "Ring 8": "ring:8",
    "FullyConnected 8": "fc:8",
    "Switch 8": "switch:8",
    "2D Mesh 4x2": "mesh:4x2",
    "DGX-1": "dgx1",
}
SMALL_NETWORKS = {name: NETWORKS[name] for name in ("Ring 8", "Switch 8", "DGX-1")}
_ASTRA_SIM = ("ring:8", "fc:8", "switch:8")  # what its congestion-aware backend has names for
_RANKS = 8


@dataclass(frozen=True)
class Case:
    """A program for a buffer of so many bytes, and the network it runs on."""

    program: str
    network: str
    size: int


def setups(quick: bool) -> list[Setup]:
    """All experiments of the paper."""
    names = list(PROGRAMS)[1::3] if quick else list(PROGRAMS)
    networks = SMALL_NETWORKS if quick else NETWORKS
    size = 1 << 20 if quick else 64 << 20
    instances = [Case(name, network, size) for name in names for network in networks]
    return [
        Setup(instances, _doors, _doors_experiment),
        Setup(instances, _consumers, _consumers_experiment),
        conversion(rings((16,)) if quick else rings()),
    ]


def _network(name: str) -> Topology:
    # ASTRA-sim's GB are 2^30 bytes: with these its networks and Weft's are the same.
    return load_topology(NETWORKS[name], None if name == "DGX-1" else "50GiB/s")


def produced(case: Case, folder: Path) -> dict[str, Algorithm]:
    """The same algorithm by each of `DOORS`; traces stay in the folder, under 0 and 1."""
    written = PROGRAMS[case.program](_RANKS, case.size).algorithm()
    write(written, folder / "program.xml")
    # MSCCL-XML does not say a size: it runs on any.
    imported = read(folder / "program.xml", Hints(size=case.size)).verified()
    algorithms = [written, imported]
    for number, algorithm in enumerate((written, imported)):
        write(algorithm, folder / str(number))
        algorithms.append(load(folder / str(number)))
    return dict(zip(DOORS, algorithms, strict=True))


@dataclass(frozen=True)
class Doors:
    """Picoseconds of one algorithm on one network, by door."""

    case: Case
    times: tuple[int, ...]
    verified: bool


def _doors(case: Case) -> Doors:
    with tempfile.TemporaryDirectory() as folder:
        ways = produced(case, Path(folder))
    times = tuple(simulate(way, _network(case.network)).time for way in ways.values())
    return Doors(case, times, all(verify(way).ok for way in ways.values()))


def _doors_experiment(found: Sequence[Doors]) -> Experiment:
    rows = [
        (
            one.case.program,
            one.case.network,
            *(time / 1e6 for time in one.times),
            "yes" if len(set(one.times)) == 1 else "no",
            one.verified,
        )
        for one in found
    ]
    networks = list(dict.fromkeys(one.case.network for one in found))
    programs = list(dict.fromkeys(one.case.program for one in found))
    times = {(one.case.program, one.case.network): one.times[0] / 1e6 for one in found}
    return Experiment(
        "doors",
        "One algorithm, four doors",
        "Each algorithm is made four times: written in Weft's language; exported to MSCCL-XML and "
        "read back; and both of these saved as Chakra traces and loaded again. All run on the same "
        "networks, first come first served. DGX-1 with its own links; all others 50 GiB/s and "
        "0.5 us a link. Ranks are placed in the order of their numbers.",
        [Table("Time in us, by door:", ("algorithm", "network", *DOORS, "same", VERIFIED), rows)],
        Bars(
            "The same algorithms on several networks",
            "us",
            networks,
            {program: [times[program, network] for network in networks] for program in programs},
        ),
    )


@dataclass(frozen=True)
class Consumers:
    """Picoseconds of one algorithm on one network, by consumer, each from both producers."""

    case: Case
    times: dict[str, tuple[int | None, int | None]]
    verified: bool


def _consumers(case: Case) -> Consumers:
    where = _network(case.network)
    runs: list[dict[str, int]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ways = produced(case, folder)
        for number, door in enumerate(DOORS[2:]):
            way = ways[door]
            times = {
                "Weft, algorithm": simulate(way, where).time,
                "Weft, traces": simulate_traces(folder / str(number), where).time,
            }
            if where.name in _ASTRA_SIM:
                bundle = folder / f"bundle{number}"
                export(way, bundle, topology=where)
                for model, aware in (("aware", True), ("unaware", False)):
                    run = simulate_astra_sim(
                        bundle / "algorithm", bundle / "network.yml", aware=aware
                    )
                    times[f"ASTRA-sim, {model}"] = run.time
            runs.append(times)
    first, second = runs
    pairs = {column: (first.get(column), second.get(column)) for column in _CONSUMERS}
    return Consumers(case, pairs, all(verify(way).ok for way in ways.values()))


_CONSUMERS = ("Weft, algorithm", "Weft, traces", "ASTRA-sim, aware", "ASTRA-sim, unaware")


def _consumers_experiment(found: Sequence[Consumers]) -> Experiment:
    rows = [
        (
            one.case.program,
            one.case.network,
            *(None if pair[0] is None else pair[0] / 1e6 for pair in one.times.values()),
            _alike(one.times),
            one.verified,
        )
        for one in found
    ]
    shared = [one for one in found if all(time for time, _ in one.times.values())]
    columns = ("algorithm", "network", *_CONSUMERS, "same by both producers", VERIFIED)
    return Experiment(
        "consumers",
        "Several consumers",
        "The Chakra traces of both producers, the language and MSCCL-XML, go to each consumer. "
        "`-`: ASTRA-sim's congestion-aware backend has no name for the network. Weft's simulators "
        "cut through switches, ASTRA-sim stores and forwards; the unaware backend lets messages "
        "pass each other on a link, so that direct algorithms look faster than they can be. "
        "ASTRA-sim adds 1 ns for every sum and rounds to whole nanoseconds. What starts there "
        "at one instant on one link starts in the order of a hash table of node numbers, in "
        "which the producers differ: *but for ties*.",
        [Table("Time in us, by consumer:", columns, rows)],
        Bars(
            "The same traces in several simulators",
            "us",
            [f"{one.case.program}, {one.case.network}" for one in shared],
            {
                name: [
                    None if (time := one.times[name][0]) is None else time / 1e6 for one in shared
                ]
                for name in _CONSUMERS
            },
        ),
    )


def _alike(times: dict[str, tuple[int | None, int | None]]) -> str:
    """Whether both producers' traces take the same time everywhere."""
    differ = [name for name, (first, second) in times.items() if first != second]
    if differ == ["ASTRA-sim, aware"]:
        return "but for ties"
    return "no" if differ else "yes"


PAPER = Paper(
    "standard",
    "A standard representation, run again",
    "The position paper (arXiv 2408.11008, IEEE Micro 45(2) 2025) proposes that producers and "
    "consumers of collective algorithms meet in Chakra execution traces, and shows it by running "
    "algorithms of MSCCLang on ASTRA-sim over several networks. Its times to convert MSCCL-XML to "
    "Chakra are second hand here: 259, 398, 1485 and 7662 ms at 16, 32, 64 and 128 NPUs, and "
    "470 MB for a ring among 128.",
    "The same workflow: ring and direct (all-pairs) algorithms written in Weft's "
    "[language](language.md) and the same algorithms read from [MSCCL-XML](msccl.md), through "
    "Chakra traces on disk, into three consumers: Weft's simulator of algorithms, its simulator "
    "of traces, which sees nothing but the Chakra files, and its model of ASTRA-sim's analytical "
    "backends, congestion-aware and unaware. Every algorithm is verified, by whichever door it "
    "came in.",
    "The programs are ours, in Weft's language and not in MSCCLang itself, and the MSCCL-XML is "
    "written by Weft; both are the textbook algorithms that the paper names. Sizes and networks "
    "are ours. ASTRA-sim itself does not run here: Weft's model of it is exact to the nanosecond "
    "on the traces it was held against. Conversion times are of another machine and another "
    "language, and include the start of the process.",
    setups,
)
