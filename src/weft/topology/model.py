"""The network as flat arrays: nodes (NPUs first, then switches) and directed links."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft import _core
from weft.errors import TopologyError
from weft.units import MAX_BYTES, parse_bandwidth, parse_latency

_UNLIMITED = 2**63 - 1  # as in cpp/base/cost.h
MAX_DIMENSIONS = 64


_LOST = "without "
_MOST_NAMED = 6  # in a title


def titled(name: str, changes: Sequence[str]) -> str:
    """A network's name and what was changed in it; of many changes only some."""
    lost = [change.removeprefix(_LOST) for change in changes if change.startswith(_LOST)]
    other = [change for change in changes if not change.startswith(_LOST)]
    words = [_LOST + _some(lost)] * bool(lost) + [_some(other)] * bool(other)
    return " ".join([name, ", ".join(words)]).rstrip()


def _some(words: Sequence[str]) -> str:
    """All of a few; of many the first, and how many more there are."""
    if len(words) <= _MOST_NAMED:
        return ", ".join(words)
    shown = words[: _MOST_NAMED - 1]
    return f"{', '.join(shown)} and {len(words) - len(shown)} more"


def node_name(node: int, npus: int) -> str:
    """What people call a node: an NPU's number, or ``s0`` for the first switch after the NPUs."""
    return str(node) if node < npus else f"s{node - npus}"


def check_dimensions(name: str, sizes: Sequence[int], npus: int) -> None:
    """Raise unless a grid of these sizes has a place for every NPU, or there is no grid."""
    if len(sizes) > MAX_DIMENSIONS:
        raise TopologyError(f"{name}: {len(sizes)} dimensions; expected {MAX_DIMENSIONS} at most")
    if sizes and (min(sizes) < 1 or math.prod(sizes) != npus):
        raise TopologyError(
            f"{name}: dimensions {list(sizes)} do not fit {npus} NPUs; expected sizes from 1 "
            "whose product is the number of NPUs"
        )


def _quantities(name: str, what: str, unit: str, values: ArrayLike) -> NDArray[np.int64]:
    """Numbers in Weft's own units, from whole numbers or texts with a unit."""
    parse = {"bandwidth": parse_bandwidth, "latency": parse_latency}[what]
    given = np.asarray(values)
    if given.dtype.kind not in "iuf":  # texts, or some of them
        given = np.asarray(values, dtype=object)
        numbers = [parse(one) if isinstance(one, str) else one for one in given.reshape(-1)]
        given = np.asarray(numbers).reshape(given.shape)
    if given.dtype.kind not in "iuf":
        raise TopologyError(f"{name}: a {what} is no number; expected {unit}")
    if given.dtype.kind == "f":
        wrong = given[~((given == np.floor(given)) & (np.abs(given) < 2.0**63))]
        for value in wrong.reshape(-1)[:1].tolist():
            raise TopologyError(f"{name}: {what} {value!r} is not a whole number of {unit}")
    return given.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Topology:
    """NPUs, switches and the directed links between them.

    Nodes are numbered: NPUs ``0..npus-1``, then switches ``npus..npus+switches-1``. NPUs
    compute and hold chunks, switches forward. Links are directed; parallel ones are
    allowed. Numbers never change: a removed NPU leaves a gap.

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
        heads = np.array(src, dtype=np.int32).reshape(-1)
        shape = heads.shape
        rates = _quantities(name, "bandwidth", "bytes per second, or '50GB/s'", bandwidth)
        delays = _quantities(name, "latency", "picoseconds, or '0.5us'", latency)
        topology = cls(
            name,
            npus,
            switches,
            heads,
            np.array(dst, dtype=np.int32).reshape(-1),
            np.array(np.broadcast_to(rates, shape)),
            np.array(np.broadcast_to(delays, shape)),
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
        return np.flatnonzero(present).astype(np.int32)

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

    def without(
        self,
        *,
        links: Iterable[tuple[int, int]] = (),
        npus: Iterable[int] = (),
    ) -> Topology:
        """The network after failures; all numbers stay what they were.

        Parameters
        ----------
        links
            Ordered pairs (source, destination): that direction goes, with all its parallels.
        npus
            NPUs that go, with every link that touches them.
        """
        keep = np.ones(self.links, dtype=bool)
        pairs = dict.fromkeys((int(source), int(destination)) for source, destination in links)
        for source, destination in pairs:
            hit = (self.src == source) & (self.dst == destination)
            if not hit.any():
                raise TopologyError(f"{self.name} has no link {source}>{destination} to remove")
            keep &= ~hit
        gone = frozenset(int(npu) for npu in npus)
        for npu in sorted(gone):
            if not 0 <= npu < self.npus:
                raise TopologyError(
                    f"{self.name} has no NPU {npu} to remove; NPUs are 0 to {self.npus - 1}"
                )
        lost = np.zeros(self.nodes, dtype=bool)
        lost[list(gone)] = True
        keep &= ~(lost[self.src] | lost[self.dst])
        if len(gone | self.removed) == self.npus:
            raise TopologyError(f"{self.name}: no NPU is left")
        return replace(
            self,
            src=self.src[keep],
            dst=self.dst[keep],
            bandwidth=self.bandwidth[keep],
            latency=self.latency[keep],
            removed=self.removed | gone,
            translates=self.translates and bool(keep.all()) and not gone,
            whole=self if self.translates else self.whole,
            changes=(*self.changes, *self._losses(pairs, gone)),
        )

    def _losses(self, pairs: Collection[tuple[int, int]], npus: Iterable[int]) -> Iterator[str]:
        """What goes, in words; both directions of a connection are one."""
        for source, destination in pairs:
            ends = self.node_name(source), self.node_name(destination)
            if (destination, source) not in pairs:
                yield f"{_LOST}{'>'.join(ends)}"
            elif source < destination:
                yield f"{_LOST}{'-'.join(ends)}"
        for npu in sorted(npus):
            yield f"{_LOST}NPU {npu}"
