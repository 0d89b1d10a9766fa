"""Moves of neighbouring slots over one connection become one move of several slots.

That saves steps. It must not cost time: nobody may need the first before the last has come, and
all must be ready when the first is.
"""

from __future__ import annotations

from dataclasses import replace

from weft.formats.msccl.moves import Move, Order

NEVER, AT_ONCE = 1 << 62, -2  # after and before all times, the unknown one (-1) included


def merged(moves: list[Move], order: Order, most: int) -> list[Move]:
    """The moves, with those together that lose nothing by it."""
    ready, needed, first_user = _readiness(moves, order)

    def fits(group: list[int], number: int) -> bool:
        first, last, move = moves[group[0]], moves[group[-1]], moves[number]
        size = sum(moves[m].count for m in group)
        return (
            size + move.count <= most
            and move.reduce == first.reduce
            and not (move.local and move.reduce)
            and move.source == (last.source[0], last.source[1] + last.count)
            and move.target == (last.target[0], last.target[1] + last.count)
            and (ready[number] <= first.start or _waits_no_longer(moves, order, group[0], number))
            and min(needed[m] for m in (*group, number)) >= move.end
            and min(first_user[m] for m in group) > number
        )

    open_groups: dict[tuple[int, int], list[int]] = {}
    groups: list[list[int]] = []
    for number, move in enumerate(moves):
        group = open_groups.get((move.src, move.dst))
        if group is not None and fits(group, number):
            group.append(number)
        else:
            group = [number]
            groups.append(group)
            open_groups[move.src, move.dst] = group
    together = [_together(moves, group) if len(group) > 1 else moves[group[0]] for group in groups]
    return sorted(together, key=lambda move: move.rows[-1])


def _readiness(moves: list[Move], order: Order) -> tuple[list[int], list[int], list[int]]:
    """When each move could start, when it is first needed, and by which move in the order.

    Without times whoever waits for anything is never ready, and whoever is needed is needed at
    once.
    """
    ready, needed = [-1] * len(moves), [NEVER] * len(moves)
    first_user = [len(moves)] * len(moves)
    for number, move in enumerate(moves):
        for earlier in order.before[2 * number] + order.before[2 * number + 1]:
            cause = earlier // 2
            known = move.start >= 0 and moves[cause].end >= 0
            ready[number] = max(ready[number], moves[cause].end if known else NEVER)
            needed[cause] = min(needed[cause], move.start if known else AT_ONCE)
            first_user[cause] = min(first_user[cause], number)
    return ready, needed, first_user


def _waits_no_longer(moves: list[Move], order: Order, first: int, number: int) -> bool:
    """Whether all that a move waits for comes no later over its connection than for the first."""
    latest: dict[tuple[int, int, int], int] = {}
    for cause in order.before[2 * first] + order.before[2 * first + 1]:
        key = _line(moves, cause)
        latest[key] = max(latest.get(key, -1), cause)
    causes = order.before[2 * number] + order.before[2 * number + 1]
    return all(cause <= latest.get(_line(moves, cause), -1) for cause in causes)


def _line(moves: list[Move], half: int) -> tuple[int, int, int]:
    """What keeps halves in order: a connection, at one of its ends."""
    return moves[half // 2].src, moves[half // 2].dst, half % 2


def _together(moves: list[Move], group: list[int]) -> Move:
    return replace(
        moves[group[0]],
        count=sum(moves[m].count for m in group),
        rows=tuple(row for m in group for row in moves[m].rows),
        end=moves[group[-1]].end,
    )
