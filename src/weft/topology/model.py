"""The network as flat arrays: nodes (NPUs first, then switches) and directed links."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft import _core
from weft.display import html_table
from weft.errors import TopologyError
from weft.quoting import brief, counted
from weft.topology.links import (
    Links,
    Pair,
    Quantity,
    bandwidths,
    connection_names,
    find_links,
    joined_nodes,
    latencies,
    losses,
    node_name,
    reverse_links,
    scaled_links,
    titled,
)
from weft.units import (
    MAX_BYTES,
    PS_PER_US,
    format_bandwidth,
    format_time,
    parse_share,
)
from weft.values import Value, read_only

if TYPE_CHECKING:
    import networkx

_UNLIMITED = 2**63 - 1  # as in cpp/base/cost.h
MAX_DIMENSIONS = 64
_COLUMNS = ("src", "dst", "bandwidth", "latency")


def check_dimensions(name: str, sizes: Sequence[int], npus: int) -> None:
    """Raise unless a grid of these sizes has a place for every NPU, or there is no grid."""
    if len(sizes) > MAX_DIMENSIONS:
        raise TopologyError(f"{name}: {len(sizes)} dimensions; expected {MAX_DIMENSIONS} at most")
    if sizes and (min(sizes) < 1 or math.prod(sizes) != npus):
        raise TopologyError(
            f"{name}: dimensions {list(sizes)} do not fit {npus} NPUs; expected sizes from 1 "
            "whose product is the number of NPUs"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Topology(Value):
    """NPUs, switches and the directed links between them.

    Nodes are numbered: NPUs ``0..npus-1``, then switches ``npus..npus+switches-1``. NPUs
    compute and hold chunks, switches forward. Links are directed; parallel ones are
    allowed. Numbers never change: a removed NPU leaves a gap.

    A network does not change: its arrays are read-only, and `without`, `scaled`, `with_link`
    and the like give another one.

    Attributes
    ----------
    name
        What the user asked for, such as ``mesh:4x4``; for printing only.
    npus, switches
        How many numbers there are of each kind.
    src, dst
        The two ends of each link (int32).
    bandwidth
        Bytes per second of each link (int64).
    latency
        α of each link in picoseconds (int64).
    removed
        NPUs that have failed: they keep their numbers but take no part.
    buffers
        Bytes that a switch can hold back, by the switch's node number; those not named have no
        limit. See ``docs/cost-model.md``.
    copying
        Switches, by node number, that send one transmission on to several (multicast).
    dimensions
        Sizes of the grid on which the NPUs sit, the first varying fastest; their product is
        `npus`. Empty if there is none. Failures do not change it: a removed NPU leaves a gap.
    translates
        Whether the grid translates onto itself: moving every NPU by the same number of places
        along a dimension, modulo its size, maps links to links of the same speed, and NPUs
        behind one switch to NPUs behind one switch. Builders declare it, synthesis may use it,
        the judge does not believe it.
    whole
        What the network was before failures, if it translated onto itself.
    changes
        In words, what makes it differ from what `name` stands for: ``without 3-s11``. For
        printing only, as in `title`; whoever changes a network adds to it.
    """

    name: str
    npus: int
    switches: int
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    bandwidth: NDArray[np.int64]
    latency: NDArray[np.int64]
    removed: frozenset[int] = field(default=frozenset())
    buffers: Mapping[int, int] = field(default_factory=dict)
    copying: frozenset[int] = field(default=frozenset())
    dimensions: tuple[int, ...] = ()
    translates: bool = False
    whole: Topology | None = None
    changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _COLUMNS:
            column = getattr(self, name)
            if column.flags.writeable:  # whoever made it may still write to it
                vars(self)[name] = column.copy()
        super().__post_init__()

    def __repr__(self) -> str:
        counts = {"NPU": len(self.members), "switch": self.switches, "link": self.links}
        return f"<Topology {brief(self.title)}: {counted(counts)}>"

    def _repr_html_(self) -> str:
        rows: dict[str, object] = {
            "NPUs": len(self.members),
            "switches": self.switches,
            "links": self.links,
        }
        speeds = (
            ("bandwidth", self.bandwidth, format_bandwidth),
            ("latency", self.latency, format_time),
        )
        for what, column, shown in speeds if self.links else ():
            ends = dict.fromkeys((shown(int(column.min())), shown(int(column.max()))))
            rows[what] = " to ".join(ends)
        if self.changes:
            rows["changed"] = titled("", self.changes).strip()
        return html_table(self.name, rows.items())

    @classmethod
    def from_links(
        cls,
        name: str,
        npus: int,
        src: ArrayLike,
        dst: ArrayLike,
        bandwidth: ArrayLike,
        latency: ArrayLike,
        *,
        switches: int = 0,
        dimensions: Iterable[int] = (),
        translates: bool = False,
    ) -> Topology:
        """Build a network from its links; scalars stand for "the same on every link".

        Parameters
        ----------
        src, dst
            The two ends of each link, by node number: switches come after the NPUs.
        bandwidth
            Of each link: bytes per second as whole numbers, or texts such as ``50GB/s``.
        latency
            Of each link: picoseconds as whole numbers, or texts such as ``0.5us``.
        switches, dimensions, translates
            See the attributes.

        Raises
        ------
        TopologyError
            If something is no network, such as a latency of 0.5e-6, which would be no whole
            number of picoseconds.
        """
        tails = np.array(src, dtype=np.int32).reshape(-1)
        columns = (
            tails,
            np.array(dst, dtype=np.int32).reshape(-1),
            bandwidths(name, bandwidth, len(tails)),
            latencies(name, latency, len(tails)),
        )
        for column in columns:
            column.flags.writeable = False
        topology = cls(
            name,
            npus,
            switches,
            *columns,
            dimensions=tuple(int(size) for size in dimensions),
            translates=translates,
        )
        topology._check()
        return topology

    def _check(self) -> None:
        if self.npus < 1:
            raise TopologyError(f"{self.name}: a network needs at least one NPU")
        for column in (self.dst, self.bandwidth, self.latency):
            if column.shape != self.src.shape:
                raise TopologyError(f"{self.name}: link columns differ in length")
        for link in np.flatnonzero(
            (self.src < 0) | (self.src >= self.nodes) | (self.dst < 0) | (self.dst >= self.nodes)
        )[:1]:
            raise TopologyError(
                f"{self.name}: link {link} joins {self.src[link]} and {self.dst[link]}, "
                f"but nodes are 0 to {self.nodes - 1}"
            )
        for link in np.flatnonzero(self.src == self.dst)[:1]:
            raise TopologyError(f"{self.name}: link {link} joins node {self.src[link]} to itself")
        for link in np.flatnonzero(self.bandwidth <= 0)[:1]:
            raise TopologyError(f"{self.name}: link {link} has no positive bandwidth")
        for link in np.flatnonzero(self.latency < 0)[:1]:
            raise TopologyError(f"{self.name}: link {link} has a negative latency")
        check_dimensions(self.name, self.dimensions, self.npus)

    @property
    def title(self) -> str:
        """The name and what was changed, such as ``h100:8 without 3-s11, NPU 5``."""
        return titled(self.name, self.changes)

    @property
    def nodes(self) -> int:
        return self.npus + self.switches

    @property
    def links(self) -> int:
        return len(self.src)

    @cached_property
    def members(self) -> NDArray[np.int32]:
        """The NPUs that are there, ascending: the default process group."""
        present = np.ones(self.npus, dtype=bool)
        present[list(self.removed)] = False
        return read_only(np.flatnonzero(present).astype(np.int32))

    def check_members(self, npus: Iterable[int]) -> None:
        """Raise if one of these is not an NPU that is there."""
        strangers = sorted(set(npus) - set(self.members.tolist()))
        if strangers:
            raise TopologyError(f"{self.name} has no NPU {strangers[0]}, which is in the group")

    def node_name(self, node: int) -> str:
        """What people call a node, such as ``3`` or ``s0``."""
        return node_name(node, self.npus)

    def link_name(self, link: int) -> str:
        """The two ends of a link, such as ``3 > s0``."""
        return f"{self.node_name(int(self.src[link]))} > {self.node_name(int(self.dst[link]))}"

    @cached_property
    def core(self) -> _core.Network:
        """The same network for the kernels."""
        return _core.Network(
            self.npus,
            self.switches,
            self.src,
            self.dst,
            self.bandwidth,
            self.latency,
            self._buffer_column(),
            self._copies_column(),
        )

    @cached_property
    def reverse_links(self) -> NDArray[np.int32] | None:
        """For each link one that runs the other way at the same speed; None if some have none."""
        found = reverse_links(self)
        return None if found is None else read_only(found)

    def _buffer_column(self) -> NDArray[np.int64]:
        """One number a switch; none at all where none is limited."""
        column = np.full(self.switches if self.buffers else 0, _UNLIMITED, dtype=np.int64)
        for switch, size in self.buffers.items():
            column[switch - self.npus] = size
        return column

    def _copies_column(self) -> NDArray[np.uint8]:
        """One number a switch; none at all where none copies."""
        column = np.zeros(self.switches if self.copying else 0, dtype=np.uint8)
        column[[switch - self.npus for switch in self.copying]] = 1
        return column

    def reversed(self) -> Topology:
        """The network with every link turned round; link numbers stay.

        No switch of it copies: run backwards, a copy is a sum, and switches do not add.
        """
        whole = None if self.whole is None else self.whole.reversed()
        return replace(self, src=self.dst, dst=self.src, copying=frozenset(), whole=whole)

    def require_whole(self) -> Topology:
        """The network before failures; raises TopologyError if there is none."""
        if self.whole is None:
            raise TopologyError(f"{self.name}: what it was before failures is not known")
        return self.whole

    def with_links(self, *, bandwidth: int | None = None, latency: int | None = None) -> Topology:
        """The same network with one bandwidth (B/s) or one latency (ps) on all links."""
        changed = self
        if bandwidth is not None:
            changed = replace(changed, bandwidth=np.full_like(self.bandwidth, bandwidth))
        if latency is not None:
            changed = replace(changed, latency=np.full_like(self.latency, latency))
        if self.whole is not None:
            whole = self.whole.with_links(bandwidth=bandwidth, latency=latency)
            changed = replace(changed, whole=whole)
        changed._check()
        return changed

    def with_switches(
        self, *, buffers: Mapping[int, int] | None = None, copying: Iterable[int] | None = None
    ) -> Topology:
        """The same network with other switches, where given: see the attributes."""
        limits = self.buffers if buffers is None else buffers
        copies = self.copying if copying is None else frozenset(copying)
        for what, switches in (("has a buffer", limits), ("copies", copies)):
            for switch in switches:
                if not self.npus <= switch < self.nodes:
                    raise TopologyError(f"{self.name}: node {switch} {what} but is no switch")
        for switch, size in limits.items():
            if not 0 <= size <= MAX_BYTES:
                raise TopologyError(
                    f"{self.name}: switch s{switch - self.npus} has a buffer of {size} B; "
                    f"expected 0 to {MAX_BYTES}"
                )
        # Switches that differ need not translate onto each other.
        plain = not limits and not copies
        return replace(
            self,
            buffers=dict(sorted(limits.items())),
            copying=copies,
            translates=self.translates and plain,
            whole=self.whole if plain else None,
        )

    def without(self, *, links: Links = (), npus: Iterable[int] = ()) -> Topology:
        """The network after failures; all numbers of nodes stay what they were.

        Parameters
        ----------
        links
            Such as ``["3-4", "0>s1"]``, or ordered pairs (source, destination): those
            directions go, with all their parallels.
        npus
            NPUs that go, with every link that touches them.
        """
        pairs, failed = find_links(self, links, "remove")
        gone = frozenset(int(npu) for npu in npus)
        for npu in sorted(gone):
            if not 0 <= npu < self.npus:
                raise TopologyError(
                    f"{self.name} has no NPU {npu} to remove; NPUs are 0 to {self.npus - 1}"
                )
        lost = np.zeros(self.nodes, dtype=bool)
        lost[list(gone)] = True
        keep = ~(failed | lost[self.src] | lost[self.dst])
        if len(gone | self.removed) == self.npus:
            raise TopologyError(f"{self.name}: no NPU is left")
        return replace(
            self,
            **{name: getattr(self, name)[keep] for name in _COLUMNS},
            removed=self.removed | gone,
            translates=self.translates and bool(keep.all()) and not gone,
            whole=self if self.translates else self.whole,
            changes=(*self.changes, *losses(pairs, gone, self.npus)),
        )

    def scaled(self, links: Links, factor: float | str) -> Topology:
        """The network with other bandwidths of some links, such as half of what they had.

        Parameters
        ----------
        links
            As in `without`.
        factor
            What their bandwidth is multiplied by: ``0.5`` or ``50%``.
        """
        return self._changed(*scaled_links(self, links, parse_share(factor)))

    def with_link(
        self,
        src: int | str,
        dst: int | str,
        *,
        bandwidth: Quantity | None = None,
        latency: Quantity | None = None,
        both: bool = True,
    ) -> Topology:
        """The network with a link more, or with another speed of one that it has.

        Parameters
        ----------
        src, dst
            Its ends: numbers of nodes, or ``s0`` for the first switch.
        bandwidth, latency
            As in `from_links`. A link that is there keeps what is not given; parallel ones
            change together. A new one needs both.
        both
            Whether the same holds for the link that runs the other way.
        """
        speed: dict[str, int] = {}
        if bandwidth is not None:
            speed["bandwidth"] = int(bandwidths(self.name, bandwidth))
        if latency is not None:
            speed["latency"] = int(latencies(self.name, latency))
        return self._changed(*joined_nodes(self, src, dst, speed, both=both))

    def _changed(self, pairs: Sequence[Pair], speed: str, columns: Mapping[str, Any]) -> Topology:
        """The network with other columns: no longer, or no part of, one that translates."""
        if all(np.array_equal(getattr(self, name), column) for name, column in columns.items()):
            return self
        words = (f"{name} at {speed}" for name in connection_names(pairs, self.npus))
        changes = (*self.changes, *words)
        network = replace(self, **columns, translates=False, whole=None, changes=changes)
        network._check()
        return network

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """The links as a table that data frames take: ``pandas.DataFrame(t.to_columns())``."""
        return {
            "src": self.src,
            "dst": self.dst,
            "bandwidth_GBps": self.bandwidth / 1e9,
            "latency_us": self.latency / PS_PER_US,
        }

    @classmethod
    def from_networkx(
        cls,
        graph: networkx.Graph[Any],
        *,
        name: str | None = None,
        bandwidth: Quantity | None = None,
        latency: Quantity | None = None,
    ) -> Topology:
        """Build a network from a graph of networkx; an undirected edge is a link each way.

        Nodes are NPUs, or switches if they have ``kind="switch"``; ``removed=True`` marks NPUs
        that have failed, ``buffer="64KiB"`` and ``multicast=True`` say what a switch can do. NPUs
        that are called 0, 1, 2, ... keep these numbers; otherwise NPUs are numbered in the
        graph's order of nodes. Switches follow in that order.

        Parameters
        ----------
        graph
            Its edges have a `bandwidth` and a `latency`, as in `from_links`.
        name
            By default the graph's own, or ``graph``.
        bandwidth, latency
            Of edges that say none.
        """
        from weft.topology.graphs import topology_of_graph

        return topology_of_graph(graph, name, bandwidth, latency)

    def to_networkx(self) -> networkx.MultiDiGraph[Any]:
        """The same network for networkx, which `from_networkx` reads back to the same columns.

        NPUs are nodes 0, 1, 2, ..., switches ``s0``, ``s1``, ...; a link's key is its number.
        Edges have `bandwidth` in bytes per second and `latency` in picoseconds.
        """
        from weft.topology.graphs import graph_of_topology

        return graph_of_topology(self)
