"""Things that belong together, by pairs that do."""

from __future__ import annotations

from collections.abc import Iterable


class Classes:
    """Numbers from 0, each in a class of its own until it is united with others."""

    def __init__(self, size: int) -> None:
        self._above = list(range(size))

    def of(self, number: int) -> int:
        """Its class: one of the numbers in it."""
        while self._above[number] != number:
            self._above[number] = number = self._above[self._above[number]]
        return number

    def unite(self, a: int, b: int) -> None:
        low, high = sorted((self.of(a), self.of(b)))
        self._above[high] = low

    def groups(self, numbers: Iterable[int]) -> list[list[int]]:
        """These numbers by class, in the order in which they come."""
        found: dict[int, list[int]] = {}
        for number in numbers:
            found.setdefault(self.of(number), []).append(number)
        return list(found.values())
