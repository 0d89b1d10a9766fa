"""Parts of a buffer that take different ways through the levels, side by side."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from weft.planners.composition import Part
from weft.planners.layouts import Frame


@dataclass(frozen=True)
class Lane:
    """A part on a frame, and what it costs at the least.

    Attributes
    ----------
    alpha, around
        Seconds of latencies; of those, what rings take, which other messages fill.
    load
        Seconds that each kind of link is held for each byte of the part.
    shared
        The most of that where several messages of a move pass the same link, one by one.
    """

    frame: Frame
    part: Part
    alpha: float = field(compare=False)
    around: float = field(compare=False)
    load: NDArray[np.float64] = field(compare=False)
    shared: float = field(compare=False)

    @classmethod
    def of(
        cls,
        frame: Frame,
        part: Part,
        rate: NDArray[np.float64],
        *,
        both: bool = False,
        exchange: bool = False,
    ) -> Lane:
        """`rate`: bytes a second of each kind of link; `both`: sums are spread, too.

        `exchange`: all has some way to go along every level.
        """
        direct, around, held = 0.0, 0.0, 1.0
        load, shared = np.zeros(len(rate)), np.zeros(len(rate))
        for step in part.steps:
            times, size = 2 if both and step.scatter else 1, frame.sizes[step.level]
            held = 1 / size if exchange else held / size if step.scatter else held
            moves = frame.moves_of(step)
            if step.ring:
                around += float(frame.usual[moves].max()) * times * (size // 2)
            else:
                direct += float(frame.alpha[moves].max()) * times
            each = frame.load[moves].sum(axis=0) * ((size - 1) / 2 if step.ring else 1)
            load = load + each / rate * held * times
            several = (frame.load[moves] > 1).any(axis=0)
            shared = shared + np.where(several, each / rate * held * times, 0)
        return cls(frame, part, direct + around, around, load, float(shared.max()))

    def time(self, size: float) -> float:
        """About how many seconds so many bytes take."""
        return self.alpha - self.around + max(self.around, float(self.load.max()) * size)

    def weighing(self, weight: float) -> Lane:
        return replace(self, part=replace(self.part, weight=weight))

    @property
    def shares(self) -> int:
        """In how many shares the part is cut."""
        return self.part.shares(self.frame.sizes)


Mix = tuple[Lane, ...]


def beside(mix: Mix, lane: Lane, weight: float) -> Mix:
    """A mix that leaves so much of the buffer to another part."""
    total = sum(other.part.weight for other in mix) / (1 - weight)
    return (*(other.weighing(other.part.weight / total) for other in mix), lane.weighing(weight))
