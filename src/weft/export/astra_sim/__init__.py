"""Everything a run of ASTRA-sim needs for an algorithm, in one folder: see docs/astra-sim.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from weft import _core
from weft.algorithm import Algorithm
from weft.cost import CostModel
from weft.documents import new_folder
from weft.errors import InputError
from weft.export.astra_sim._files import (
    MEMORY,
    groups_json,
    logical_json,
    network_yml,
    ns3_network,
    readme,
    run_script,
    system_json,
)
from weft.export.astra_sim._forms import Form, between_npus, by_links
from weft.export.astra_sim._routing import routed
from weft.export.astra_sim._shapes import Shape, shapes_of
from weft.export.astra_sim._traces import (
    Call,
    algorithm_traces,
    call_of,
    participants,
    predicted_ns,
    write_workload,
)
from weft.formats.chakra.schema import TAGS
from weft.judge import verify
from weft.progress import interruptible
from weft.topology import Topology
from weft.units import PS_PER_NS

__all__ = ["BUNDLE_NAME", "Bundle", "export"]

BUNDLE_NAME = re.compile(
    r"(npus-)?((algorithm|workload)\.[0-9]+\.et|system\.json|groups\.json)"
    r"|network\.yml|unaware\.yml|memory\.json|run\.sh|README\.txt"
    r"|ns3-(topology|config)\.txt|ns3-logical\.json"
)
_BINARY = "AstraSim_Analytical_Congestion_Aware"
_NEAR = 0.01  # what a run may be off the plan before more messages are tried
_MOST_PARTS = 64
_MOST_SPLIT = 1 << 18  # messages: ASTRA-sim takes minutes for more
_NPUS = "npus-"  # the second set of traces, for backends that route through switches themselves


@dataclass(frozen=True)
class Bundle:
    """What was written.

    Attributes
    ----------
    folder
        Where.
    binary
        The backend for which network.yml is meant.
    network
        What network.yml says, in words.
    ranks
        How many ranks run; switches may be among them.
    messages
        How many messages they send.
    group
        Ranks of the process group that runs the algorithm; None if all do.
    collective
        As which collective ASTRA-sim runs it.
    unaware, ns3
        Whether there are files for the congestion-unaware and the ns-3 backend.
    planned_ns
        The plan's time; None if the algorithm has none.
    predicted_ns
        The time that the congestion-aware backend will print; None for bundles too large to run.
    parts
        Messages that each chunk is sent in.
    bytes
        Of all traces.
    notes
        What is approximated, one sentence each.
    """

    folder: str
    binary: str
    network: str
    ranks: int
    messages: int
    group: tuple[int, ...] | None
    collective: str
    unaware: bool
    ns3: bool
    planned_ns: float | None
    predicted_ns: int | None
    parts: int
    bytes: int
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """What was written, for machines: what ``weft export astra-sim --json`` prints."""
        return {
            "output": self.folder,
            "binary": self.binary,
            "topology": self.network,
            "ranks": self.ranks,
            "messages": self.messages,
            "members": None if self.group is None else list(self.group),
            "collective": self.collective,
            "unaware": self.unaware,
            "ns3": self.ns3,
            "planned_us": None if self.planned_ns is None else self.planned_ns / 1000,
            "predicted_us": None if self.predicted_ns is None else self.predicted_ns / 1000,
            "parts": self.parts,
            "stored_bytes": self.bytes,
            "notes": list(self.notes),
        }


@interruptible
def export(
    algorithm: Algorithm,
    folder: str | Path,
    *,
    topology: Topology | None = None,
    progress: _core.Progress | None = None,
) -> Bundle:
    """Write a bundle that runs `algorithm`, a verified one, on ASTRA-sim.

    The whole folder appears at once or not at all; an existing one is replaced only if it is
    empty or holds nothing but a bundle.

    Parameters
    ----------
    topology
        The network, for algorithms that were made for none.

    Raises
    ------
    InputError
        There is no network, or two; or the algorithm is too large for ASTRA-sim.
    FormatError
        The folder cannot be written.
    """
    target = Path(folder)
    job = chosen(_without_sums(algorithm), topology)
    with new_folder(target, BUNDLE_NAME) as place:
        return _write(job, place, target, progress)


def _without_sums(algorithm: Algorithm) -> Algorithm:
    """The same for switches that do not add, nor copy if nothing is copied there.

    Raises
    ------
    InputError
        Some switch adds: a message of ASTRA-sim has one sender.
    """
    network = algorithm.topology
    if network is None or not algorithm.timed or network.plain is network:
        return algorithm
    for other in (network.plain, network.with_switches(adding=())):
        if verify(algorithm.on(other)).ok:
            return algorithm.on(other)
    raise InputError(
        f"switches of {network.title} add, which ASTRA-sim's do not; synthesize for switches that "
        "only forward, such as h100:1,plain"
    )


def chosen(algorithm: Algorithm, topology: Topology | None) -> _Job:
    """The form whose time comes near the plan's with the fewest messages.

    ASTRA-sim passes on whole messages where switches of the plan cut through: the smaller they
    are, the less that takes.
    """
    best = _Job.of(algorithm, topology)
    while best.predicted is not None and best.in_parts and best.lateness > _NEAR:
        parts = 2 * best.main.parts
        if parts > _MOST_PARTS or 2 * len(best.main.rows) > _MOST_SPLIT:
            break
        if parts > int(algorithm.chunks.bytes.min()):
            break
        other = _Job.of(algorithm, topology, parts)
        if other.lateness > best.lateness - _NEAR / 4:
            break
        best = other
    return best


@dataclass(frozen=True, eq=False)
class _Job:
    """An algorithm on its network, in the forms in which ASTRA-sim can run it."""

    algorithm: Algorithm
    topology: Topology
    call: Call
    shapes: tuple[Shape, ...] | None  # of the network, if ASTRA-sim has a name for it
    main: Form
    npus: Form  # the same as `main` where that has one rank an NPU and the sizes that move
    relayed: bool  # whether NPUs pass on what was not planned that way

    @classmethod
    def of(cls, algorithm: Algorithm, topology: Topology | None, parts: int = 1) -> _Job:
        network = _network(algorithm, topology)
        if network.nodes < 2:
            raise InputError(f"{network.name} has one NPU; ASTRA-sim needs at least two")
        if not network.links:
            raise InputError(f"{network.name} has no links")
        rows, relayed = routed(algorithm, network)
        cost = algorithm.cost if algorithm.timed else None
        shapes = shapes_of(network)
        if shapes is not None and len(shapes) == 1:
            main = npus = between_npus(rows, network, cost, shapes, parts)
        else:
            main = npus = by_links(rows, network, cost, parts)
            if network.switches or main.notes:
                npus = between_npus(rows, network, cost, shapes or ())
        if len(main.rows) >= TAGS:
            raise InputError(f"{len(main.rows)} messages; ASTRA-sim can tell {TAGS - 1} apart")
        return cls(algorithm, network, call_of(algorithm.demands), shapes, main, npus, relayed)

    @cached_property
    def predicted(self) -> int | None:
        """The time of `main` in nanoseconds, if that can be found out."""
        ranks = participants(self.main, self.algorithm.demands)
        return predicted_ns(self.main, self.traces(self.main), ranks)

    def traces(self, form: Form) -> Iterator[bytes]:
        """The traces of the ranks that take part."""
        ranks = participants(form, self.algorithm.demands)
        return algorithm_traces(form, self.call, ranks, self.algorithm.chunks)

    @property
    def cost(self) -> CostModel | None:
        """The cost model of the plan's times, if it has any."""
        return self.algorithm.cost if self.algorithm.timed else None

    @property
    def in_parts(self) -> bool:
        """Whether smaller messages could bring the time nearer to the plan's."""
        return (
            self.cost is not None
            and self.cost.switching == "cut-through"
            and self.topology.switches > 0
        )

    @property
    def lateness(self) -> float:
        """By which part of the plan's time the predicted one is longer."""
        if self.predicted is None or not self.algorithm.timed:
            return 0.0
        return self.predicted * PS_PER_NS / max(self.algorithm.time, 1) - 1

    @property
    def unaware(self) -> tuple[Shape, ...] | None:
        """Dimensions that only the congestion-unaware backend takes."""
        return self.shapes if self.shapes is not None and len(self.shapes) > 1 else None

    def notes(self) -> Iterator[str]:
        """What is not as it was planned."""
        yield from self.main.notes
        if self.relayed:
            yield "some rows join NPUs without a link: NPUs on the shortest way pass them on"
        if self.cost is None:
            yield "the algorithm has no times: ASTRA-sim starts each send when its data is there"
        else:
            yield from self._about_plan(self.cost)
        if self.main.rows.reduce.any():
            yield "each sum takes 1 ns, the least ASTRA-sim can say"
        demands = self.algorithm.demands
        if len(demands) > 1:
            yield f"the {len(demands)} collectives run as one, called {self.call.kind}"
        elif not self.call.exact:
            yield f"ASTRA-sim takes no algorithm for {demands[0].kind}: called {self.call.kind}"

    def _about_plan(self, cost: CostModel) -> Iterator[str]:
        if cost.latency_model == "blocking":
            yield "planned with α that blocks the link; ASTRA-sim does not let it"
        if abs(self.lateness) > _NEAR:
            yield f"{self.lateness:+.1%} on the planned time: {self._reason(cost)}"
        if self.in_parts:
            yield "planned with cut-through switches; here each stores and forwards, link by link"
            if self.main.parts > 1:
                yield f"chunks are sent in {self.main.parts} messages, to be passed on sooner"
        if self.topology.buffers:
            yield "the limits of switch buffers are ignored"
        held = int(np.count_nonzero(self.main.pace.gate))
        if held:
            yield f"{held} sends wait 1 ns, so that each link keeps the plan's order"

    def _reason(self, cost: CostModel) -> str:
        """Why the predicted time is not the planned one: what applies, the largest first."""
        reasons = []
        if self.in_parts:
            reasons.append("switches pass messages on only when they have them whole")
        if cost.latency_model == "blocking":
            reasons.append("α does not block links")
        if self.main.delay is not None:
            reasons.append("latencies are rounded to microseconds")
        return "; ".join(reasons) or "what takes no time in the plan takes 1 ns"


def _network(algorithm: Algorithm, topology: Topology | None) -> Topology:
    own = algorithm.topology
    if own is not None and topology is not None:
        raise InputError(f"the algorithm was made for {own.name}: leave out the other network")
    found = topology or own
    if found is None:
        raise InputError("the algorithm was made for no network: name one with --topology")
    return found


def _write(job: _Job, place: Path, target: Path, progress: _core.Progress | None) -> Bundle:
    demands, main = job.algorithm.demands, job.main
    ranks = participants(main, demands)
    written = _write_set(job, place, "", main, progress)
    ns3 = ns3_network(job.topology)
    second = job.npus is not main and (job.unaware is not None or not isinstance(ns3, str))
    prefix = _NPUS if second else ""
    if second:
        written += _write_set(job, place, prefix, job.npus, progress)
    unaware = None if job.unaware is None else (prefix, job.npus.ranks)
    if job.unaware is not None:
        _put(place, "unaware.yml", network_yml(job.unaware))
    notes = list(job.notes())
    if isinstance(ns3, str):
        notes.append(f"there are no files for ns-3: {ns3}")
    else:
        _put(place, "ns3-topology.txt", ns3.topology)
        _put(place, "ns3-config.txt", ns3.config)
        _put(place, "ns3-logical.json", logical_json(job.topology.npus))
        notes += ns3.notes
    planned = job.algorithm.time if job.algorithm.timed else None
    _put(place, "network.yml", network_yml(main.shapes))
    _put(place, "memory.json", MEMORY)
    _put(place, "run.sh", run_script(main.ranks, unaware, planned, job.predicted))
    mode = (place / "run.sh").stat().st_mode
    (place / "run.sh").chmod(mode | (mode & 0o444) >> 2)  # who may read it may run it
    bundle = Bundle(
        str(target),
        _BINARY,
        f"{main.shapes[0].name} of {main.shapes[0].size}",
        main.ranks,
        int(np.count_nonzero(~main.rows.local)),
        None if len(ranks) == main.ranks else tuple(ranks.tolist()),
        job.call.kind,
        unaware is not None,
        not isinstance(ns3, str),
        None if planned is None else planned / 1000,
        job.predicted,
        main.parts,
        written,
        tuple(notes),
    )
    grouped = (place / f"{prefix}groups.json").exists()
    _put(place, "README.txt", readme(bundle, job.algorithm, job.topology, prefix, grouped))
    return bundle


def _write_set(
    job: _Job, place: Path, prefix: str, form: Form, progress: _core.Progress | None
) -> int:
    """Traces, and the files that name them."""
    ranks = participants(form, job.algorithm.demands)
    _put(place, f"{prefix}system.json", system_json(job.call.kind, f"{prefix}algorithm"))
    if len(ranks) < form.ranks:
        _put(place, f"{prefix}groups.json", groups_json(ranks))
    written = write_workload(place, f"{prefix}workload", form, job.call, ranks)
    if progress is not None:
        progress.begin(len(ranks))
    for rank, trace in enumerate(job.traces(form)):
        if progress is not None:
            progress.advance()
        (place / f"{prefix}algorithm.{rank}.et").write_bytes(trace)
        written += len(trace)
    return written


def _put(place: Path, name: str, text: str) -> None:
    (place / name).write_text(text, encoding="utf-8")
