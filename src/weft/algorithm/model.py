"""The algorithm: the common representation of producers and consumers, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.rows import Rows
from weft.algorithm.timing import Timing
from weft.algorithm.transfers import Routes, Transfers
from weft.collective import Chunks, Collective
from weft.cost import CostModel
from weft.display import html_table, line, title_of
from weft.errors import InputError
from weft.memory import check_table
from weft.ragged import offsets_of
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
        The transfers: a table, or a compact form of it (see `CompactRows`), of which `transfers`
        is made when first asked for.
    timing
        What the times hold for: the network, the cost model and the routes. None if it was made
        for no network.
    provenance
        How it was made (method, seed, ...): for people, not for meaning.
    """

    demands: tuple[Collective, ...]
    rows: Rows
    timing: Timing | None = None
    provenance: Mapping[str, str | int | float | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.demands:
            raise InputError("an algorithm serves at least one collective")
        if self.rows.compact and (
            self.timing is None or (len(self.demands) != 1 and not self.rows.several)
        ):
            raise InputError("compact rows need a topology, a cost model and one collective")
        if self.timed and self.timing is None:
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
        return self._table[0]

    @property
    def topology(self) -> Topology | None:
        return None if self.timing is None else self.timing.topology

    @property
    def cost(self) -> CostModel | None:
        return None if self.timing is None else self.timing.cost

    @property
    def routes(self) -> Routes:
        """The routes that `transfers` names by number; none if it was made for no network."""
        return self._table[1]

    def require_timing(self) -> Timing:
        """What its times hold for; raises InputError if it was made for no network."""
        if self.timing is None:
            raise InputError("the algorithm was not made for a network")
        return self.timing

    @cached_property
    def _table(self) -> tuple[Transfers, Routes]:
        if self.rows.compact:
            check_table(len(self.rows))
        return self.rows.table(self)

    def on(self, topology: Topology) -> Algorithm:
        """The same rows and times for another network; whether they hold there is not checked."""
        timing = self.require_timing()
        return (
            self
            if timing.topology is topology
            else replace(self, timing=replace(timing, topology=topology))
        )

    def of_npu(self, npu: int) -> Transfers:
        """The rows in which one NPU sends or receives, in the order of the table."""
        return self.rows.of_npu(self, npu)

    @cached_property
    def chunks(self) -> Chunks:
        """All demands' chunks, under their global numbers."""
        return Chunks.concatenate([demand.chunks for demand in self.demands])

    @cached_property
    def time(self) -> int:
        """When the last transfer ends, in picoseconds."""
        return self.rows.time(self)

    @property
    def time_us(self) -> float:
        return self.time / PS_PER_US

    @cached_property
    def times(self) -> tuple[int, ...]:
        """When the last transfer of each demand ends, in picoseconds."""
        if len(self.demands) == 1 or self.rows.several:
            return (self.time,) * len(self.demands)
        return last_ends(self.demands, self.transfers.chunk, self.transfers.require_times().end)


def last_ends(
    demands: Sequence[Collective], chunk: NDArray[np.int32], end: NDArray[np.int64]
) -> tuple[int, ...]:
    """When the last row of each demand ends, given the chunk and the end of each row."""
    firsts = offsets_of([len(demand.chunks) for demand in demands])
    of = np.searchsorted(firsts, chunk, side="right") - 1
    last = np.zeros(len(demands), dtype=np.int64)
    np.maximum.at(last, of, end)
    return tuple(last.tolist())
