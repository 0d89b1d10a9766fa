"""When rows of a run were on their way, and when links were held."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Routes
from weft.values import Value


@dataclass(frozen=True, eq=False)
class Occupied(Value):
    """Every hold of a link, by link and time; on one link no two overlap.

    Attributes
    ----------
    duration
        How long the hop of each row of the algorithm took, adding apart, in picoseconds (int64).
    row
        The row that held the link; of rows that a switch copies, and that share the hold, the
        first (int64).
    link
        The link (int32).
    begin, length
        When, and for how long, in picoseconds (int64).
    """

    duration: NDArray[np.int64]
    row: NDArray[np.int64]
    link: NDArray[np.int32]
    begin: NDArray[np.int64]
    length: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        routes: Routes,
        route: NDArray[np.int32],
        times: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    ) -> Occupied:
        """The holds, from the times that the core gives for the links of each row's route."""
        duration, begin, length = times
        row, link = routes.crossed(route)
        order = np.lexsort((row, begin, link))
        order = order[length[order] > 0]
        row, link, begin, length = row[order], link[order], begin[order], length[order]
        # Two rows on a link at the same time are one transmission.
        new = np.ones(len(row), dtype=np.bool_)
        new[1:] = (link[1:] != link[:-1]) | (begin[1:] != begin[:-1])
        return cls(duration, row[new], link[new], begin[new], length[new])
