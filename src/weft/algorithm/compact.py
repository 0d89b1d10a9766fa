"""Rows that are not listed one by one: too many for a table, or told by a rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from weft.algorithm.transfers import Routes, Transfers
from weft.display import line
from weft.values import Value

if TYPE_CHECKING:
    from weft.algorithm.model import Algorithm


class CompactRows(Value, ABC):
    """The timed rows of an algorithm for one collective, in a few bytes a row or fewer.

    They mean nothing without the algorithm's network, cost model and collective, so each method
    is handed the algorithm whose rows they are.
    """

    timed = True

    def __repr__(self) -> str:
        return line(self, f"{len(self):,} rows")

    @abstractmethod
    def __len__(self) -> int:
        """How many transfers there are."""

    @abstractmethod
    def time(self, algorithm: Algorithm) -> int:
        """When the last transfer ends, in picoseconds."""

    @abstractmethod
    def of_npu(self, algorithm: Algorithm, npu: int) -> Transfers:
        """The rows in which one NPU sends or receives; routes are numbered as in `table`."""

    @abstractmethod
    def table(self, algorithm: Algorithm) -> tuple[Transfers, Routes]:
        """All rows, and the routes they name."""
