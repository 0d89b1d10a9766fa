"""Sets that together make up a whole, each once: which flows are of the same chunk."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

STEPS_A_SET = 20


def exact_cover(sets: Sequence[int], whole: int) -> list[list[int]] | None:
    """Put sets (bit masks) into groups of which each makes up `whole`; None if none are found.

    Sets outside `whole` go with the first group. The search gives up after some steps a set.
    """
    inside = [mask & whole for mask in sets]
    if all(mask == whole for mask in inside):
        return [[i] for i in range(len(inside))]
    if sum(mask.bit_count() for mask in inside) % max(whole.bit_count(), 1):
        return None
    return _Search(inside, whole).run()


class _Search:
    """Fills one group after the other: always the lowest place that is still empty."""

    def __init__(self, sets: list[int], whole: int) -> None:
        self._sets, self._whole = sets, whole
        self._with_bit: dict[int, list[int]] = {0: []}  # under 0: all that have any
        for i, mask in enumerate(sets):
            for bit in _bits(mask):
                self._with_bit.setdefault(bit, []).append(i)
            if mask:
                self._with_bit[0].append(i)
        self._low = dict.fromkeys(self._with_bit, 0)  # sets before this are used
        self._used = [mask == 0 for mask in sets]
        self._left = self._used.count(False)
        self._steps = 1000 + STEPS_A_SET * len(sets)

    def run(self) -> list[list[int]] | None:
        chosen: list[int] = []  # sets in the order they were put in groups
        filled = 0  # what the group at hand has
        tries = [self._candidates(0)]
        while tries and self._steps > 0:
            pick = next((i for i in tries[-1] if not self._sets[i] & filled), None)
            if pick is None:
                tries.pop()
                if chosen:
                    filled = self._undo(chosen.pop(), filled)
                continue
            chosen.append(pick)
            self._used[pick] = True
            self._left -= 1
            filled |= self._sets[pick]
            if filled == self._whole:
                filled = 0
                if self._left == 0:
                    return self._grouped(chosen)
            tries.append(self._candidates(filled))
        return None

    def _undo(self, undone: int, filled: int) -> int:
        self._used[undone] = False
        self._left += 1
        for bit in (0, *_bits(self._sets[undone])):
            self._low[bit] = min(self._low[bit], undone)
        return (filled or self._whole) & ~self._sets[undone]

    def _candidates(self, filled: int) -> Iterator[int]:
        """Sets that are left and fill the lowest empty place.

        A new group begins with the first set that is left: it has to go somewhere.
        """
        missing = self._whole & ~filled
        bit = missing & -missing if filled else 0
        having = self._with_bit.get(bit, [])
        at = bisect_left(having, self._low.get(bit, 0))
        while at < len(having) and self._used[having[at]]:
            at += 1
            self._steps -= 1
        if bit in self._low and at < len(having):
            self._low[bit] = having[at]
        last = len(having) if filled else at + 1
        for place in range(at, min(last, len(having))):
            self._steps -= 1
            if self._steps < 0:
                return
            if not self._used[having[place]]:
                yield having[place]

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
