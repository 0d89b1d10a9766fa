"""Sets that together make up a whole, each once: which flows are of the same chunk."""

from __future__ import annotations

from collections.abc import Sequence

STEPS_A_SET = 50


def cover(sets: Sequence[int], whole: int) -> list[list[int]] | None:
    """Put sets (bit masks) into groups of which each makes up `whole`; None if none are found.

    Sets outside `whole` go with the first group. The search gives up after some steps a set.
    """
    inside = [mask & whole for mask in sets]
    if all(mask == whole for mask in inside):
        return [[i] for i in range(len(inside))]
    return _Search(inside, whole).run()


class _Search:
    """Fills one group after the other: always the lowest place that is still empty."""

    def __init__(self, sets: list[int], whole: int) -> None:
        self._sets, self._whole = sets, whole
        self._with_bit: dict[int, list[int]] = {}
        for i, mask in enumerate(sets):
            for bit in _bits(mask):
                self._with_bit.setdefault(bit, []).append(i)
        self._used = [mask == 0 for mask in sets]
        self._left = self._used.count(False)
        self._low = 0  # all before it are used

    def run(self) -> list[list[int]] | None:
        chosen: list[int] = []  # sets in the order they were put in groups
        filled = 0  # what the group at hand has
        tries = [iter(self._starts())]
        for _ in range(1000 + STEPS_A_SET * len(self._sets)):
            if not tries:
                return None
            pick = next((i for i in tries[-1] if self._fits(i, filled)), None)
            if pick is None:
                tries.pop()
                if chosen:
                    undone = chosen.pop()
                    self._used[undone] = False
                    self._low = min(self._low, undone)
                    self._left += 1
                    filled = (filled or self._whole) & ~self._sets[undone]
                continue
            chosen.append(pick)
            self._used[pick] = True
            self._left -= 1
            filled |= self._sets[pick]
            if filled == self._whole:
                filled = 0
                if self._left == 0:
                    return self._grouped(chosen)
            tries.append(iter(self._next(filled)))
        return None

    def _starts(self) -> list[int]:
        """A new group begins with the first set that is left: it has to go somewhere."""
        while self._low < len(self._used) and self._used[self._low]:
            self._low += 1
        return [self._low] if self._low < len(self._used) else []

    def _fits(self, i: int, filled: int) -> bool:
        return not self._used[i] and not self._sets[i] & filled

    def _next(self, filled: int) -> list[int]:
        if filled == 0:
            return self._starts()
        missing = self._whole & ~filled
        return self._with_bit.get(missing & -missing, [])

    def _grouped(self, chosen: list[int]) -> list[list[int]]:
        groups: list[list[int]] = []
        filled = self._whole
        for i in chosen:
            if filled == self._whole:
                groups.append([])
                filled = 0
            groups[-1].append(i)
            filled |= self._sets[i]
        groups[0] += [i for i, mask in enumerate(self._sets) if mask == 0]
        return groups


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        found.append(mask & -mask)
        mask &= mask - 1
    return found
