"""The algorithm: the common representation of producers and consumers, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.compact import CompactRows
from weft.algorithm.transfers import Routes, Transfers
from weft.collective import Chunks, Collective
from weft.cost import CostModel
from weft.display import html_table, line, title_of
from weft.errors import InputError
from weft.memory import check_table
from weft.topology.model import Topology
from weft.units import PS_PER_US, format_time
from weft.values import Value


@dataclass(frozen=True, eq=False)
class Algorithm(Value):
    """Who sends which chunk to whom, after what, and (if timed) over which links and when.

    Attributes
    ----------
    demands
        The collectives it serves. Chunk numbers are global: those of the first demand come
        first, then those of the second, and so on.
    rows
        The transfers: a table, or a compact form of it (see `CompactRows`) from which
        `transfers` is made when first asked for.
    topology, route_table, cost
        The network, the routes and the cost model the times hold for; absent if untimed. Compact
        rows know their routes.
    provenance
        How it was made (method, seed, ...): for people, not for meaning.
    """

    demands: tuple[Collective, ...]
    rows: Transfers | CompactRows
    topology: Topology | None = None
    route_table: Routes | None = None
    cost: CostModel | None = None
    provenance: Mapping[str, str | int | float | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.demands:
            raise InputError("an algorithm serves at least one collective")
        if isinstance(self.rows, CompactRows):
            if self.topology is None or self.cost is None or len(self.demands) != 1:
                raise InputError("compact rows need a topology, a cost model and one collective")
        elif self.timed and (self.topology is None or self.routes is None or self.cost is None):
            raise InputError("a timed algorithm needs a topology, routes and a cost model")

    def __len__(self) -> int:
        """How many transfers there are."""
        return len(self.rows)

    def __repr__(self) -> str:
        when = format_time(self.time) if self.timed else "untimed"
        return line(self, f"{self.title}: {len(self):,} transfers", when)

    def _repr_html_(self) -> str:
        facts = {
            "time": format_time(self.time) if self.timed else "untimed",
            "transfers": f"{len(self):,}",
            **self.provenance,
        }
        return html_table(self.title, facts.items())

    @property
    def title(self) -> str:
        """What it does and where, in a few words."""
        return title_of(self.demands, self.topology)

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """The transfers for a data frame: `Transfers.to_columns`, and each one's bytes."""
        return {**self.transfers.to_columns(), "bytes": self.chunks.bytes[self.transfers.chunk]}

    @property
    def timed(self) -> bool:
        return self.rows.timed

    @property
    def transfers(self) -> Transfers:
        """All rows as a table.

        Raises
        ------
        InputError
            They are compact, and too many for the memory that is there.
        """
        return self.rows if isinstance(self.rows, Transfers) else self._table[0]

    @property
    def routes(self) -> Routes | None:
        """The routes that `transfers` names by number."""
        return self._table[1] if isinstance(self.rows, CompactRows) else self.route_table

    @cached_property
    def _table(self) -> tuple[Transfers, Routes]:
        assert isinstance(self.rows, CompactRows)
        check_table(len(self.rows))
        return self.rows.table(self)

    def of_npu(self, npu: int) -> Transfers:
        """The rows in which one NPU sends or receives, in the order of the table."""
        if isinstance(self.rows, CompactRows):
            return self.rows.of_npu(self, npu)
        return self.rows.selected(np.flatnonzero((self.rows.src == npu) | (self.rows.dst == npu)))

    @cached_property
    def chunks(self) -> Chunks:
        """All demands' chunks, under their global numbers."""
        return Chunks.concatenate([demand.chunks for demand in self.demands])

    @cached_property
    def time(self) -> int:
        """When the last transfer ends, in picoseconds."""
        if isinstance(self.rows, CompactRows):
            return self.rows.time(self)
        if self.rows.end is None:
            raise InputError("the algorithm has no times yet: it was not made for a network")
        return int(self.rows.end.max(initial=0))

    @property
    def time_us(self) -> float:
        return self.time / PS_PER_US

    @cached_property
    def times(self) -> tuple[int, ...]:
        """When the last transfer of each demand ends, in picoseconds."""
        if len(self.demands) == 1:
            return (self.time,)
        if self.transfers.end is None:
            raise InputError("the algorithm has no times yet: it was not made for a network")
        return last_ends(self.demands, self.transfers.chunk, self.transfers.end)


def last_ends(
    demands: Sequence[Collective], chunk: NDArray[np.int32], end: NDArray[np.int64]
) -> tuple[int, ...]:
    """When the last row of each demand ends, given the chunk and the end of each row."""
    firsts = np.cumsum([0, *(len(demand.chunks) for demand in demands)])
    of = np.searchsorted(firsts, chunk, side="right") - 1
    last = np.zeros(len(demands), dtype=np.int64)
    np.maximum.at(last, of, end)
    return tuple(last.tolist())
