"""The optimum by brute force, for networks of two to four NPUs and a few equal chunks.

Time goes in whole units. A link takes a chunk for `busy` units; it is there `delay` units after
it was sent. Every choice of every link in every unit is tried, waiting included.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

Value = frozenset[int]  # the contributions in a sum; a whole chunk has just one
Held = tuple[tuple[Value | None, ...], ...]  # by NPU, by chunk
Flight = tuple[int, int, int, Value, bool]  # units to go, NPU, chunk, value, add it?


@dataclass(frozen=True)
class Link:
    src: int
    dst: int
    busy: int
    delay: int


@dataclass(frozen=True)
class State:
    held: Held
    busy: tuple[int, ...]
    flights: tuple[Flight, ...]


def optimum(links: list[Link], start: Held, goal: Held, most: int = 40) -> int:
    """Units until every value of `goal` that is not None is there."""
    states = {State(start, (0,) * len(links), ())}
    for now in range(most):
        if any(_reached(state.held, goal) for state in states):
            return now
        states = {after for state in states for after in _next(links, state, goal)}
    raise AssertionError("no way within the limit")


def _reached(held: Held, goal: Held) -> bool:
    return all(
        wanted is None or wanted == has
        for row, wants in zip(held, goal, strict=True)
        for has, wanted in zip(row, wants, strict=True)
    )


def _next(links: list[Link], state: State, goal: Held) -> set[State]:
    choices = [
        _sends(link, busy, state, goal) for link, busy in zip(links, state.busy, strict=True)
    ]
    found = set()
    for sends in product(*choices):
        flights = list(state.flights)
        busy = list(state.busy)
        for number, (link, send) in enumerate(zip(links, sends, strict=True)):
            if send is not None:
                chunk, value, add = send
                flights.append((link.delay, link.dst, chunk, value, add))
                busy[number] = link.busy
        if (after := _landed(state.held, flights)) is not None:
            held, left = after
            found.add(State(held, tuple(max(0, b - 1) for b in busy), left))
    return found


def _sends(link: Link, busy: int, state: State, goal: Held) -> list[tuple[int, Value, bool] | None]:
    """What a link may do now: nothing, or copy, or add one of its source's values."""
    options: list[tuple[int, Value, bool] | None] = [None]
    if busy:
        return options
    for chunk, value in enumerate(state.held[link.src]):
        coming = [flight[3] for flight in state.flights if flight[1:3] == (link.dst, chunk)]
        if value is None or any(value & other for other in coming):
            continue
        there = state.held[link.dst][chunk]
        full = max((row[chunk] or frozenset() for row in goal), key=len)
        if there is None or (value == full and there != full):
            options.append((chunk, value, False))
        elif not value & there:
            options.append((chunk, value, True))
    return options


def _landed(held: Held, flights: list[Flight]) -> tuple[Held, tuple[Flight, ...]] | None:
    """One unit later; None if a sum would count a contribution twice."""
    rows = [list(row) for row in held]
    left = []
    for to_go, npu, chunk, value, add in sorted(flights, key=lambda f: (f[0], f[4])):
        if to_go > 1:
            left.append((to_go - 1, npu, chunk, value, add))
            continue
        there = rows[npu][chunk]
        if add and there is not None:
            if there & value:
                return None
            value = there | value
        rows[npu][chunk] = value
    return tuple(map(tuple, rows)), tuple(sorted(left, key=repr))
