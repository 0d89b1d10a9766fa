"""The network as flat arrays: nodes (NPUs first, then switches) and directed links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft import _core
from weft.display import html_table
from weft.errors import TopologyError
from weft.quoting import brief, counted
from weft.topology.changes import COLUMNS, with_joined, with_scaled, without_parts
from weft.topology.checks import check_network, check_switches
from weft.topology.links import Links, Quantity, node_name, quantities, reverse_links, titled
from weft.units import PS_PER_US, format_bandwidth, format_time, parse_share
from weft.values import Value, read_only

if TYPE_CHECKING:
    import networkx

    from weft.topology.labels import Labels
    from weft.topology.symmetry import Symmetry

_UNLIMITED = 2**63 - 1  # as in cpp/base/cost.h
Columns = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]


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
    adding
        Switches, by node number, that add what meets there on its way to one NPU.
    dimensions
        Sizes of the grid on which the NPUs sit, the first varying fastest; their product is
        `npus`. Empty if there is none. Failures do not change it: a removed NPU leaves a gap.
    translates
        Whether the grid translates onto itself: moving every NPU by the same number of places
        along a dimension, modulo its size, maps links to links of the same speed, if switches
        move with their NPUs, whatever these can do. Builders declare it, synthesis may use it,
        the judge does not believe it.
    whole
        What the network was before failures, if it translated onto itself.
    changes
        In words, what makes it differ from what `name` stands for: ``without 3-s11``. For
        printing only, as in `title`; whoever changes a network adds to it.
    labels
        What its nodes are called in the file it was read from; for printing, and for what looks
        for faults.
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
    adding: frozenset[int] = field(default=frozenset())
    dimensions: tuple[int, ...] = ()
    translates: bool = False
    whole: Topology | None = None
    changes: tuple[str, ...] = ()
    labels: Labels | None = None

    def __post_init__(self) -> None:
        for name in COLUMNS:
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
        tails, heads = (np.array(nodes, dtype=np.int32).reshape(-1) for nodes in (src, dst))
        rates = quantities(name, "bandwidth", bandwidth, len(tails))
        columns = (tails, heads, rates, quantities(name, "latency", latency, len(tails)))
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
        check_network(topology)
        return topology

    @property
    def title(self) -> str:
        """The name and what was changed, such as ``h100:8 without 3-s11, NPU 5``."""
        return titled(self.name, self.changes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the file it was read from left open, or what was left out of it: sentences."""
        return self.labels.notes if self.labels else ()

    @property
    def nodes(self) -> int:
        return self.npus + self.switches

    @property
    def links(self) -> int:
        return len(self.src)

    @property
    def columns(self) -> Columns:
        """`src`, `dst`, `bandwidth` and `latency`."""
        return self.src, self.dst, self.bandwidth, self.latency

    @cached_property
    def members(self) -> NDArray[np.int32]:
        """The NPUs that are there, ascending: the default process group."""
        present = np.ones(self.npus, dtype=bool)
        present[list(self.removed)] = False
        return read_only(np.flatnonzero(present).astype(np.int32))

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """The place of each NPU among `members`; -1 for those that were removed."""
        ranks = np.full(self.npus, -1, dtype=np.int64)
        ranks[self.members] = np.arange(len(self.members))
        return read_only(ranks)

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
        copies, adds = (
            self._by_switch(dict.fromkeys(able, 1), 0, np.uint8)
            for able in (self.copying, self.adding)
        )
        limits = self._by_switch(self.buffers, _UNLIMITED, np.int64)
        return _core.Network(self.npus, self.switches, *self.columns, limits, copies, adds)

    def _by_switch(
        self, numbers: Mapping[int, int], others: int, kind: type[np.generic]
    ) -> NDArray[Any]:
        """One number a switch; none at all where no switch has its own."""
        column = np.full(self.switches if numbers else 0, others, dtype=kind)
        for switch, number in numbers.items():
            column[switch - self.npus] = number
        return column

    @cached_property
    def reverse_links(self) -> NDArray[np.int32] | None:
        """For each link one that runs the other way at the same speed; None if some have none."""
        found = reverse_links(self)
        return None if found is None else read_only(found)

    def reversed(self) -> Topology:
        """The network with every link turned round; link numbers stay.

        Switches that copied add, and those that added copy: run backwards, a copy is a sum.
        """
        whole = None if self.whole is None else self.whole.reversed()
        turned = replace(self, src=self.dst, dst=self.src, whole=whole)
        return replace(turned, copying=self.adding, adding=self.copying)

    @property
    def plain(self) -> Topology:
        """The same network with switches that only forward; itself if none can do more."""
        return self._plain if self.copying or self.adding else self

    @cached_property
    def _plain(self) -> Topology:
        whole = None if self.whole is None else self.whole.plain
        return replace(self, copying=frozenset(), adding=frozenset(), whole=whole)

    @cached_property
    def shifts(self) -> bool:
        """Whether it translates: see `translates`; if that is not declared, links are looked at."""
        from weft.topology.symmetry import grid_shifts

        return self.translates or grid_shifts(self)

    @cached_property
    def symmetry(self) -> Symmetry:
        """How NPUs can be exchanged for each other: declared, or searched for."""
        from weft.topology.symmetry import symmetry_of

        return symmetry_of(self)

    def require_whole(self) -> Topology:
        """The network before failures; raises TopologyError if there is none."""
        if self.whole is None:
            raise TopologyError(f"{self.name}: what it was before failures is not known")
        return self.whole

    def with_links(self, *, bandwidth: int | None = None, latency: int | None = None) -> Topology:
        """The same network with one bandwidth (B/s) or one latency (ps) on all links."""
        speed = {"bandwidth": bandwidth, "latency": latency}
        columns: dict[str, Any] = {
            name: np.full_like(getattr(self, name), value)
            for name, value in speed.items()
            if value is not None
        }
        whole = None if self.whole is None else self.whole.with_links(**speed)
        changed = replace(self, **columns, whole=whole)
        check_network(changed)
        return changed

    def with_switches(
        self,
        *,
        buffers: Mapping[int, int] | None = None,
        copying: Iterable[int] | None = None,
        adding: Iterable[int] | None = None,
    ) -> Topology:
        """The same network with other switches, where given: see the attributes."""
        limits = self.buffers if buffers is None else buffers
        copies = self.copying if copying is None else frozenset(copying)
        adds = self.adding if adding is None else frozenset(adding)
        check_switches(self, limits, copies, adds)
        return replace(
            self,
            buffers=dict(sorted(limits.items())),
            copying=copies,
            adding=adds,
            whole=None if limits else self.whole,
        )

    def without(
        self,
        *,
        links: Links = (),
        npus: Iterable[int] = (),
        switches: Iterable[int | str] = (),
    ) -> Topology:
        """The network after failures; all numbers of nodes stay what they were.

        Parameters
        ----------
        links
            Such as ``["3-4", "0>s1"]``, or ordered pairs (source, destination): those
            directions go, with all their parallels.
        npus
            NPUs that go, with every link that touches them.
        switches
            Switches that go, such as ``"s3"``, with every link that touches them.
        """
        return without_parts(self, links, npus, switches)

    def scaled(self, links: Links, factor: float | str) -> Topology:
        """The network with other bandwidths of some links, such as half of what they had.

        Parameters
        ----------
        links
            As in `without`.
        factor
            What their bandwidth is multiplied by: ``0.5`` or ``50%``.
        """
        return with_scaled(self, links, parse_share(factor))

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
        given = {"bandwidth": bandwidth, "latency": latency}
        speed = {
            what: int(quantities(self.name, what, value))
            for what, value in given.items()
            if value is not None
        }
        return with_joined(self, src, dst, speed, both=both)

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
        that have failed, ``buffer="64KiB"``, ``multicast=True`` and ``adding=True`` say what a
        switch can do. NPUs that are called 0, 1, 2, ... keep these numbers; otherwise NPUs are
        numbered in the graph's order of nodes. Switches follow in that order.

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
