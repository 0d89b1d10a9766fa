"""What every kind of rows can do, be it a table or a rule that stands for one.

A kind is a class here, a judge in `weft.judge.kinds` and a way to store it in
`weft.formats.store.kinds`, all under one name. Nothing else needs to know it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from weft.display import line
from weft.values import Value

if TYPE_CHECKING:
    from weft.algorithm.model import Algorithm
    from weft.algorithm.transfers import Routes, Transfers

Numbers = NDArray[np.int64]


class Rows(Value, ABC):
    """The rows of an algorithm.

    They may mean nothing without the algorithm's network, cost model and collective, so each
    method is handed the algorithm whose rows they are.

    Attributes
    ----------
    kind
        Name of the kind, under which its judge and its place in a store are found.
    compact
        Whether they are not listed one by one, because they are too many for a table or follow a
        rule.
    several
        Whether they are compact and may serve several collectives, all of which end together.
    """

    kind: ClassVar[str]
    compact: ClassVar[bool]
    several: ClassVar[bool] = False

    @property
    @abstractmethod
    def timed(self) -> bool:
        """Whether they have routes and times."""

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

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """In which form the rows are (``form``), and what is peculiar to it."""


class CompactRows(Rows):
    """The timed rows of an algorithm for one collective, in a few bytes per row or fewer."""

    compact = True

    @property
    def timed(self) -> bool:
        return True

    def near(self, algorithm: Algorithm, npu: int, rows: Transfers) -> Numbers | None:  # noqa: ARG002
        """The switch between an NPU and the other end of each of its rows; None: just one may be.

        `rows` are those of the NPU, as `of_npu` gives them.
        """
        return None

    def __repr__(self) -> str:
        return line(self, f"{len(self):,} rows")
