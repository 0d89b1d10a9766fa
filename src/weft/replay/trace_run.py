"""What came of a run of traces: when nodes ran, what decided the time, and what never ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.cost import CostModel
from weft.display import html_table, line
from weft.topology.links import node_name
from weft.units import PS_PER_NS, PS_PER_US, format_time
from weft.values import Value

KINDS = ("compute", "send", "receive", "host")
"""What a node does, by the numbers of `TraceRun.kind`; ``host`` computes on the CPU."""

_MESSAGES = [KINDS.index("send"), KINDS.index("receive")]
_SHOWN_LINKS = 10
_OF_CORE = ("_graph", "_run")
_COLUMNS = ("start", "end", "finish", "kind", "rank", "id", "_messages")
_FINDINGS = ("links", "stuck", "critical_path")


@dataclass(frozen=True)
class Stuck:
    """A COMM_RECV that nothing came for.

    Attributes
    ----------
    rank, node
        Where it is; the id in that rank's file.
    source, tag, size
        The message that it waits for.
    sender
        Id of the source's COMM_SEND that never started, or None if there is none left.
    """

    rank: int
    node: int
    source: int
    tag: int
    size: int
    sender: int | None

    def __str__(self) -> str:
        waits = f"waits for {self.size} B with tag {self.tag} from rank {self.source}"
        why = "which nobody sends"
        if self.sender is not None:
            why = f"whose node {self.sender} never starts to send"
        return f"rank {self.rank}: node {self.node} {waits}, {why}"


@dataclass(frozen=True)
class Step:
    """A node of the critical path.

    It starts when the step before it ends; only a COMM_RECV may have been started before that.

    Attributes
    ----------
    rank, node, kind
        Where it is, its id in that rank's file, and what it does: see `KINDS`.
    start, end
        In picoseconds.
    waited
        How long a COMM_SEND's message waited for links that others held, in picoseconds.
    peer, size
        The other rank and the bytes of a message; None for what computes.
    """

    rank: int
    node: int
    kind: str
    start: int
    end: int
    waited: int = 0
    peer: int | None = None
    size: int | None = None


@dataclass(frozen=True, eq=False)
class Links(Value):
    """How long links were held.

    Attributes
    ----------
    src, dst
        Their ends: node numbers, of NPUs and from `TraceRun.npus` on of switches.
    busy
        Picoseconds.
    """

    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    busy: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.src)


@dataclass(frozen=True, eq=False)
class TraceRun(Value):
    """What happened when traces ran.

    Columns of nodes (rank, id, kind, start, end) go one rank after the other, in ascending order of
    id. Times are picoseconds, -1 for what never happened.

    Attributes
    ----------
    where
        The traces, as the user named them.
    network
        Name of the network.
    npus
        How many NPUs it has; nodes from there on are switches.
    model
        Whose idea of time: ``weft``, ``astra-sim aware`` or ``astra-sim unaware``.
    cost
        The cost model; None for ASTRA-sim, which has its own.
    lowered
        What collectives were replaced by: figures of `weft.workload.Lowering`; None if there
        were none.
    """

    where: str
    network: str
    npus: int
    model: str
    cost: CostModel | None
    lowered: Mapping[str, Any] | None
    _graph: _core.RunGraph
    _run: _core.TraceRun

    def __repr__(self) -> str:
        many = f"{self.ranks:,} ranks, {self.nodes:,} nodes"
        never = "" if self.finished else f"{self.unfinished:,} of them never ended"
        return line(self, f"{self.title}: {format_time(self.time)}", many, never)

    def _repr_html_(self) -> str:
        shares = self._path_figures()
        steps = shares.pop("steps")
        return html_table(
            self.title,
            (
                ("time", format_time(self.time)),
                ("ranks", f"{self.ranks:,}"),
                ("nodes", f"{self.nodes:,}, {self.unfinished:,} of them never ended"),
                ("critical path", f"{len(steps):,} steps"),
                *((name, f"{time:.6g}") for name, time in shares.items()),
            ),
        )

    def __getstate__(self) -> dict[str, Any]:
        """What the core says of the run, in place of its objects, which cannot be pickled."""
        plain = {name: v for name, v in super().__getstate__().items() if name not in _OF_CORE}
        return plain | {name: getattr(self, name) for name in _COLUMNS + _FINDINGS}

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """The nodes for a data frame; times are NaN for what never happened."""
        start, end = (
            np.where(times < 0, np.nan, times / PS_PER_US) for times in (self.start, self.end)
        )
        kind = np.array(KINDS)[self.kind]
        return {"rank": self.rank, "node": self.id, "kind": kind, "start_us": start, "end_us": end}

    @property
    def title(self) -> str:
        """What ran and where, in a few words."""
        return f"{self.where} on {self.network}"

    @property
    def ranks(self) -> int:
        return len(self.finish)

    @property
    def nodes(self) -> int:
        return len(self.kind)

    @cached_property
    def start(self) -> NDArray[np.int64]:
        """When each node started."""
        return self._run.start

    @cached_property
    def end(self) -> NDArray[np.int64]:
        """When each node ended: a COMM_SEND with the arrival of its last byte."""
        return self._run.end

    @cached_property
    def kind(self) -> NDArray[np.uint8]:
        """What each node does: see `KINDS`."""
        return self._graph.kind

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """The rank of each node."""
        firsts = self._graph.firsts
        return np.repeat(np.arange(self.ranks, dtype=np.int32), np.diff(firsts))

    @cached_property
    def id(self) -> NDArray[np.uint64]:
        """The id of each node in its rank's file."""
        return self._graph.ids()

    @cached_property
    def finish(self) -> NDArray[np.int64]:
        """When each rank's last node ended; -1 if one never did."""
        return self._run.finish

    @property
    def finish_ns(self) -> list[int | None]:
        """`finish` in whole nanoseconds, in which ASTRA-sim counts; None if a node never ended."""
        return [None if time < 0 else time // PS_PER_NS for time in self.finish.tolist()]

    @property
    def finished(self) -> bool:
        """Whether every node ran."""
        return bool((self.finish >= 0).all())

    @cached_property
    def time(self) -> int:
        """When the last node ended."""
        return int(self.end.max(initial=0))

    @property
    def time_us(self) -> float:
        return self.time / PS_PER_US

    @property
    def unfinished(self) -> int:
        """How many nodes never ended."""
        return int((self.end < 0).sum())

    @cached_property
    def links(self) -> Links:
        """Use of the links; of ASTRA-sim's only those that were used, and none if unaware."""
        return Links(*self._run.links)

    @cached_property
    def stuck(self) -> tuple[Stuck, ...]:
        """What the nodes that never ended wait for, directly or over others."""
        found = []
        for recv, send in self._run.stuck:
            source, rank, tag, size = self.message(recv)
            sender = None if send is None else int(self.id[send])
            found.append(Stuck(rank, int(self.id[recv]), source, tag, size, sender))
        return tuple(found)

    @cached_property
    def critical_path(self) -> tuple[Step, ...]:
        """The chain of nodes that decided when the last one ended, in order."""
        return tuple(self._step(node) for node in self._run.critical_chain().tolist())

    def message(self, node: int) -> tuple[int, int, int, int]:
        """Source, destination, tag and bytes of the message of a COMM_SEND or COMM_RECV."""
        if "_messages" in vars(self):  # as they are where it was pickled
            source, destination, tag, size = self._messages[node].tolist()
            return source, destination, tag, size
        return self._graph.message(node)

    @cached_property
    def _messages(self) -> NDArray[np.int64]:
        """All messages; zeros for nodes that have none."""
        messages = np.zeros((self.nodes, 4), dtype=np.int64)
        for node in np.flatnonzero(np.isin(self.kind, _MESSAGES)).tolist():
            messages[node] = self._graph.message(node)
        return messages

    def _step(self, node: int) -> Step:
        start, end, kind = int(self.start[node]), int(self.end[node]), KINDS[self.kind[node]]
        step = Step(int(self.rank[node]), int(self.id[node]), kind, start, end)
        if kind in ("compute", "host"):
            return step
        source, taker, _, size = self.message(node)
        if kind == "receive":
            return replace(step, peer=source, size=size)
        waited = end - start - self._run.alone(node)
        return replace(step, waited=waited, peer=taker, size=size)

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines."""
        # Whole nanoseconds, as ASTRA-sim prints them.
        whole = {"time_ns": self.time // PS_PER_NS, "finish_ns": self.finish_ns}
        return {
            "path": self.where,
            "topology": self.network,
            "model": self.model,
            "latency_model": None if self.cost is None else self.cost.latency_model,
            "switching": None if self.cost is None else self.cost.switching,
            "ranks": self.ranks,
            "nodes": self.nodes,
            "finished": self.finished,
            "time_us": self.time_us,
            "finish_us": [None if t < 0 else t / PS_PER_US for t in self.finish.tolist()],
            **({} if self.model == "weft" else whole),
            **({} if self.lowered is None else {"lowering": dict(self.lowered)}),
            "critical_path": self._path_figures(),
            "busiest_links": self._link_figures(),
            "unfinished": self.unfinished,
            "stuck": [str(one) for one in self.stuck],
        }

    def _path_figures(self) -> dict[str, Any]:
        steps = self.critical_path
        sends = [step for step in steps if step.kind == "send"]
        computes = (step.end - step.start for step in steps if step.kind in ("compute", "host"))
        return {
            "compute_us": sum(computes) / PS_PER_US,
            "transfer_us": sum(s.end - s.start - s.waited for s in sends) / PS_PER_US,
            "waiting_for_links_us": sum(s.waited for s in sends) / PS_PER_US,
            "steps": [
                {
                    "rank": step.rank,
                    "node": step.node,
                    "kind": step.kind,
                    "start_us": step.start / PS_PER_US,
                    "end_us": step.end / PS_PER_US,
                }
                for step in steps
            ],
        }

    def _link_figures(self) -> list[dict[str, Any]]:
        links, npus = self.links, self.npus
        order = np.argsort(-links.busy, kind="stable")[:_SHOWN_LINKS]
        columns = (column[order].tolist() for column in (links.src, links.dst, links.busy))
        return [
            {"src": node_name(a, npus), "dst": node_name(b, npus), "busy_us": busy / PS_PER_US}
            for a, b, busy in zip(*columns, strict=True)
            if busy > 0
        ]
