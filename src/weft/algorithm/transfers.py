"""The table of transfers: one row per hop from NPU to NPU, as NumPy columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm.rows import Rows
from weft.display import html_table, line
from weft.errors import InputError
from weft.ragged import lengths_of, offsets_of, owners, places
from weft.units import PS_PER_US
from weft.values import Value

if TYPE_CHECKING:
    from weft.algorithm.model import Algorithm
    from weft.topology.model import Topology


class Buffer(IntEnum):
    """The buffers a place can lie in. A chunk's HOME is where it lies in an in-place buffer."""

    HOME = 0
    INPUT = 1
    OUTPUT = 2
    SCRATCH = 3


PLACE_BITS = 29
_SHOWN_ROWS = 10


def place(buffer: Buffer, index: int) -> int:
    """A place on an NPU as one number: a buffer, and a chunk's number (a slot in SCRATCH)."""
    return (int(buffer) << PLACE_BITS) | index


def scratch_slots(places: NDArray[np.int32]) -> int:
    """How many slots of SCRATCH it takes to hold these places: the highest and one."""
    used = places[_in_scratch(places)] & ((1 << PLACE_BITS) - 1)
    return int(used.max(initial=-1)) + 1


def moved_places(places: NDArray[np.int32], chunk: int, slot: int) -> NDArray[np.int32]:
    """The same places counted from another first chunk, or another first slot of SCRATCH."""
    return (places + np.where(_in_scratch(places), slot, chunk)).astype(np.int32)


def _in_scratch(places: NDArray[np.int32]) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = places >> PLACE_BITS == Buffer.SCRATCH
    return inside


@dataclass(frozen=True, eq=False)
class Routes(Value):
    """The links each route crosses, in order: route ``r`` is ``links[offsets[r]:offsets[r+1]]``.

    On a network without switches a route is a link, with the link's number.
    """

    offsets: NDArray[np.int64]
    links: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def core(self) -> _core.Rows:
        """The table for the kernels."""
        return _core.Rows(offsets=self.offsets, items=self.links)

    def __repr__(self) -> str:
        return line(self, f"{len(self):,} over {len(self.links):,} links")

    @property
    def are_links(self) -> bool:
        """Whether each route is one link, with the link's number."""
        links = Routes.of_links(len(self.links))
        return np.array_equal(self.links, links.links) and np.array_equal(
            self.offsets, links.offsets
        )

    def crossed(self, route: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The links of each of these routes, one after the other: places in `route`, and links."""
        return owners(lengths_of(self.offsets, route)), self.links[places(self.offsets, route)]

    @classmethod
    def of_links(cls, links: int) -> Routes:
        return cls(np.arange(links + 1, dtype=np.int64), np.arange(links, dtype=np.int32))

    @classmethod
    def joined(cls, tables: Sequence[Routes]) -> tuple[Routes, NDArray[np.int32]]:
        """One table for several, and what to add to the route numbers of each."""
        if all(table.are_links for table in tables):
            return max(tables, key=len), np.zeros(len(tables), dtype=np.int32)
        ends = offsets_of([table.offsets[-1] for table in tables])
        offsets = [table.offsets[:-1] + end for table, end in zip(tables, ends[:-1], strict=True)]
        routes = cls(
            np.concatenate([*offsets, ends[-1:]]).astype(np.int64),
            np.concatenate([table.links for table in tables]),
        )
        shifts = offsets_of([*map(len, tables[:-1])]).astype(np.int32)
        return routes, shifts


COLUMN_TYPES: dict[str, type[np.generic]] = {
    "chunk": np.int32,
    "src": np.int32,
    "dst": np.int32,
    "reduce": np.bool_,
    "route": np.int32,
    "start": np.int64,
    "end": np.int64,
    "src_place": np.int32,
    "dst_place": np.int32,
    "dep_offsets": np.int64,
    "deps": np.int64,
}


class Times(NamedTuple):
    """The columns of the timed layer of `Transfers`."""

    route: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Transfers(Rows):
    """Rows in an order in which they could run one after the other.

    The logical layer. Row ``i`` reads its chunk at a place on `src` as the rows before it left
    it, and writes it (or adds it, if `reduce`) to a place on `dst`: that order is the meaning
    of the table, and it needs no topology. A row waits for the earlier rows that wrote the
    place it reads. Explicit dependencies (`dep_offsets`, `deps`) carry what an imported
    algorithm demands beyond that.

    The timed layer. `route`, `start` and `end` are all there or all absent.

    Attributes
    ----------
    chunk, src, dst
        Which chunk, from which NPU, to which (int32).
    reduce
        Whether the chunk is added to what `dst` has, instead of replacing it (bool).
    route
        Number of the route in the algorithm's `Routes` (int32).
    start, end
        When the hop starts, and when `dst` can use the chunk, in picoseconds (int64).
    src_place, dst_place
        Places (see `place`) read and written, where they are not the chunk's HOME (int32).
    dep_offsets, deps
        Rows that row ``i`` also waits for: ``deps[dep_offsets[i]:dep_offsets[i + 1]]`` (int64).
    """

    kind = "table"
    compact = False

    chunk: NDArray[np.int32]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    reduce: NDArray[np.bool_]
    route: NDArray[np.int32] | None = None
    start: NDArray[np.int64] | None = None
    end: NDArray[np.int64] | None = None
    src_place: NDArray[np.int32] | None = None
    dst_place: NDArray[np.int32] | None = None
    dep_offsets: NDArray[np.int64] | None = None
    deps: NDArray[np.int64] | None = None

    @classmethod
    def over_links(
        cls,
        topology: Topology,
        chunk: NDArray[Any],
        link: NDArray[Any],
        reduce: NDArray[np.bool_],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
    ) -> Transfers:
        """Timed rows that cross one link each, in order of start."""
        order = np.argsort(start, kind="stable")
        lane = link[order].astype(np.int32)
        ends = topology.src[lane], topology.dst[lane]
        return cls(
            chunk[order].astype(np.int32), *ends, reduce[order], lane, start[order], end[order]
        )

    def __len__(self) -> int:
        return len(self.chunk)

    def __repr__(self) -> str:
        return line(self, f"{len(self):,} rows", "" if self.timed else "untimed")

    def _repr_html_(self) -> str:
        columns = self.selected(np.arange(min(len(self), _SHOWN_ROWS))).to_columns()
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        more = f"{len(self) - _SHOWN_ROWS:,} more rows" if len(self) > _SHOWN_ROWS else ""
        return html_table(f"{len(self):,} transfers", rows, list(columns), more)

    @property
    def timed(self) -> bool:
        return self.start is not None

    def require_times(self) -> Times:
        """The timed layer; raises InputError if it is not there."""
        if self.route is None or self.start is None or self.end is None:
            raise InputError("the algorithm has no times yet: it was not made for a network")
        return Times(self.route, self.start, self.end)

    def time(self, _algorithm: Algorithm) -> int:
        return int(self.require_times().end.max(initial=0))

    def of_npu(self, _algorithm: Algorithm, npu: int) -> Transfers:
        return self.selected(np.flatnonzero((self.src == npu) | (self.dst == npu)))

    def table(self, algorithm: Algorithm) -> tuple[Transfers, Routes]:
        timing = algorithm.timing
        return self, Routes.of_links(0) if timing is None else timing.routes

    def described(self) -> dict[str, Any]:
        return {"form": "table", "columns": list(self.columns())}

    @cached_property
    def core(self) -> _core.Transfers:
        """The table for the kernels."""
        return _core.Transfers(**{f.name: getattr(self, f.name) for f in fields(self)})

    def columns(self) -> dict[str, NDArray[np.generic]]:
        """The columns that are there, by name."""
        pairs = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: column for name, column in pairs if column is not None}

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """The columns for a data frame, units in their names; those that are there.

        Explicit dependencies are left out, since a row may have any number of them.
        """
        given = {name: c for name, c in self.columns().items() if not name.startswith("dep")}
        for name in given.keys() & {"start", "end"}:
            given[name] = given[name] / PS_PER_US  # type: ignore[operator]
        return {f"{n}_us" if n in ("start", "end") else n: column for n, column in given.items()}

    def reordered(self, order: NDArray[np.intp]) -> Transfers:
        """The same rows in another order, in which none waits for a later one."""
        offsets, deps = self.dep_offsets, self.deps
        if offsets is not None and deps is not None:
            number = np.empty(len(self), dtype=np.int64)
            number[order] = np.arange(len(self))
            deps = number[deps[places(offsets, order)]]
            offsets = offsets_of(lengths_of(offsets, order))
        return replace(self.selected(order), dep_offsets=offsets, deps=deps)

    def selected(self, rows: NDArray[np.intp]) -> Transfers:
        """Some of the rows, without their explicit dependencies."""
        columns: dict[str, Any] = {
            name: column[rows]
            for name, column in self.columns().items()
            if name not in ("dep_offsets", "deps")
        }
        return Transfers(**columns)
