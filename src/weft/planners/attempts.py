"""What the portfolio tried: which planner, what it gave, what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.units import PS_PER_US


@dataclass(frozen=True)
class Attempt:
    """One planner's turn.

    Attributes
    ----------
    method
        The planner.
    time
        Picoseconds that its plan takes; None if it has none that is better.
    chunks
        How many chunks the plan has in all; None if there is none.
    seconds
        How long it worked, in seconds; 0 if it was not asked.
    note
        Why it was not asked, or gave nothing; empty if it gave a plan.
    """

    method: str
    time: int | None = None
    chunks: int | None = None
    seconds: float = 0.0
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "time_us": None if self.time is None else self.time / PS_PER_US,
            "chunk_count": self.chunks,
            "planning_s": self.seconds,
            "note": self.note,
        }
