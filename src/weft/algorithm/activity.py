"""What one NPU does in an algorithm, also where the algorithm is too large to list."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.model import Algorithm
from weft.algorithm.rows import CompactRows
from weft.algorithm.transfers import Transfers
from weft.errors import InputError
from weft.topology.links import node_name
from weft.topology.model import Topology
from weft.units import PS_PER_US

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Activity:
    """The sends and receives of one NPU.

    Attributes
    ----------
    npu
        The NPU.
    rows
        Its transfers, in order of their starts, or of the table where there are no times.
    bytes
        Bytes of each.
    near
        The node on the other end of the link by which each leaves or reaches the NPU: a switch, or
        the other NPU; -1 where no network is known, or the row stays on the NPU.
    """

    algorithm: Algorithm
    npu: int
    rows: Transfers
    bytes: Numbers
    near: Numbers

    @classmethod
    def of(cls, algorithm: Algorithm, npu: int) -> Activity:
        """Look at one NPU; compact rows are not expanded."""
        _check_npu(algorithm, npu)
        rows = algorithm.of_npu(npu)
        if rows.start is not None:
            rows = rows.selected(np.argsort(rows.start, kind="stable"))
        return cls(
            algorithm, npu, rows, chunk_bytes(algorithm, rows.chunk), _near(algorithm, npu, rows)
        )

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def sends(self) -> NDArray[np.bool_]:
        """Which rows go to another NPU."""
        away: NDArray[np.bool_] = (self.rows.src == self.npu) & (self.rows.dst != self.npu)
        return away

    @cached_property
    def receives(self) -> NDArray[np.bool_]:
        """Which rows come from another NPU."""
        here: NDArray[np.bool_] = (self.rows.dst == self.npu) & (self.rows.src != self.npu)
        return here

    @property
    def bytes_out(self) -> int:
        return int(self.bytes[self.sends].sum())

    @property
    def bytes_in(self) -> int:
        return int(self.bytes[self.receives].sum())

    @cached_property
    def busiest(self) -> tuple[str, int] | None:
        """The ends of the link of this NPU that carries most, and its bytes; None if unknown."""
        used = np.flatnonzero(self.near >= 0)
        if not len(used):
            return None
        key = self.near[used] * 2 + self.receives[used]
        links, which = np.unique(key, return_inverse=True)
        carried = np.zeros(len(links), dtype=np.int64)
        np.add.at(carried, which.reshape(-1), self.bytes[used])
        most = int(carried.argmax())
        node, inwards = divmod(int(links[most]), 2)
        return self._link(node, inwards=bool(inwards)), int(carried[most])

    def _link(self, node: int, *, inwards: bool) -> str:
        npus = self.algorithm.require_timing().topology.npus
        ends = [str(self.npu), node_name(node, npus)]
        return " > ".join(reversed(ends) if inwards else ends)

    def row(self, at: int) -> dict[str, Any]:
        """One of the rows, in plain values."""
        rows, sent, received = self.rows, bool(self.sends[at]), bool(self.receives[at])
        what = "send" if sent else "receive" if received else "local"
        near = int(self.near[at])
        return {
            "what": what,
            "chunk": int(rows.chunk[at]),
            "peer": int(rows.dst[at] if sent else rows.src[at]),
            "bytes": int(self.bytes[at]),
            "reduce": bool(rows.reduce[at]),
            "link_name": None if near < 0 else self._link(near, inwards=received),
            "start_us": None if rows.start is None else int(rows.start[at]) / PS_PER_US,
            "end_us": None if rows.end is None else int(rows.end[at]) / PS_PER_US,
        }

    def to_dict(self, limit: int) -> dict[str, Any]:
        """The figures, for machines, with at most `limit` of the rows."""
        return {
            "npu": self.npu,
            "sends": int(self.sends.sum()),
            "receives": int(self.receives.sum()),
            "sent_bytes": self.bytes_out,
            "received_bytes": self.bytes_in,
            "busiest_link": None if self.busiest is None else self.busiest[0],
            "busiest_link_bytes": None if self.busiest is None else self.busiest[1],
            "listed": [self.row(at) for at in range(min(limit, len(self)))],
            "more": max(len(self) - limit, 0),
        }


def _check_npu(algorithm: Algorithm, npu: int) -> None:
    topology = algorithm.topology
    if topology is not None:
        if not 0 <= npu < topology.npus:
            raise InputError(
                f"{topology.name} has no NPU {npu}; its NPUs are 0 to {topology.npus - 1}"
            )
    elif npu < 0:
        raise InputError(f"there is no NPU {npu}; expected 0 or more")


def chunk_bytes(algorithm: Algorithm, chunk: NDArray[np.int32]) -> Numbers:
    """Bytes of these chunks; compact rows may name chunks that are too many for a table."""
    demand = algorithm.demands[0]
    if algorithm.rows.compact and demand.parts is None and demand.smallest_chunk:
        sizes = demand.piece_bytes  # of one buffer, where every NPU has one of its own
        return sizes[chunk.astype(np.int64) % len(sizes)]
    return algorithm.chunks.bytes[chunk]


def _near(algorithm: Algorithm, npu: int, rows: Transfers) -> Numbers:
    """See `Activity.near`."""
    topology, out = algorithm.topology, rows.src == npu
    if topology is None or rows.route is None:
        return np.full(len(rows), -1, dtype=np.int64)
    near = np.where(out, rows.dst, rows.src).astype(np.int64)
    if topology.switches and isinstance(algorithm.rows, CompactRows):
        known = algorithm.rows.near(algorithm, npu, rows)
        near = _ways_from(topology, npu)[near] if known is None else known
    elif topology.switches:
        routes = algorithm.routes
        ends = routes.offsets[rows.route], routes.offsets[rows.route + 1] - 1
        # What stays on its NPU crosses no link.
        first, last = (routes.links[np.minimum(end, len(routes.links) - 1)] for end in ends)
        near = np.where(out, topology.dst[first], topology.src[last]).astype(np.int64)
    return np.where(rows.src == rows.dst, -1, near)


def _ways_from(topology: Topology, npu: int) -> Numbers:
    """The first node on the way from an NPU to each NPU next to it or behind one switch."""
    beside = topology.dst[topology.src == npu]
    behind = np.isin(topology.src, beside[beside >= topology.npus])
    way = np.full(topology.npus, -1, dtype=np.int64)
    way[topology.dst[behind]] = topology.src[behind]
    direct = beside[beside < topology.npus]
    way[direct] = direct
    return way
