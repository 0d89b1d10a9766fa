"""Which moves become one step: a sum with what was received for it, a send with its receive."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from weft.algorithm import Buffer
from weft.formats.msccl.moves import Move, Order, Place

Connection = tuple[int, int, int]  # from a GPU to a GPU, and which of several between them


@dataclass(frozen=True)
class Added:
    """A local addition that a receiving step does: received + operand, stored where it says."""

    move: int
    operand: Place


@dataclass(eq=False)
class Fusions:
    """What is fused, by the number of the message that is received.

    Attributes
    ----------
    added
        The addition that is done on receiving.
    passed_on
        The message that is sent on in the same step.
    blocks
        The connections whose ends on a GPU share a thread block: (in, out).
    """

    added: dict[int, Added]
    passed_on: dict[int, int]
    blocks: dict[Connection, Connection]

    def fuses(self, message: int) -> bool:
        """Whether the step that receives a message does more than that."""
        return message in self.passed_on or message in self.added

    def dissolve(self, message: int) -> None:
        """Take a step apart: first what it sends on, then what it adds."""
        if self.passed_on.pop(message, None) is None:
            self.added.pop(message)


def spread(moves: list[Move], lanes: int) -> list[int]:
    """A lane for each chunk, which it keeps all the way, such that lanes are about equally long."""
    by_chunk: list[list[int]] = [[] for _ in range(1 + max((m.chunk for m in moves), default=0))]
    numbers: dict[tuple[int, int], int] = {}
    for move in moves:
        if not move.local:
            number = numbers.setdefault((move.src, move.dst), len(numbers))
            by_chunk[move.chunk].append(number)
    load = np.zeros((len(numbers), lanes), dtype=np.int64)
    found = []
    for crossed in by_chunk:
        lane = int(load[crossed].max(axis=0, initial=0).argmin()) if lanes > 1 else 0
        np.add.at(load[:, lane], crossed, 1)
        found.append(lane)
    return found


def connection_of(move: Move, lanes: list[int]) -> Connection:
    """The connection a message takes; `lanes` are those of all chunks."""
    return move.src, move.dst, lanes[move.chunk]


def fusions_of(moves: list[Move], order: Order, lanes: list[int]) -> Fusions:
    """All fusions that may be good; whether they can run is for others to say."""
    added = _additions(moves, order)
    candidates = _forwards(moves, order, added)
    blocks = _partners(moves, candidates, lanes)
    passed_on: dict[int, int] = {}
    last: dict[Connection, int] = {}
    for sent, received in sorted(candidates.items()):
        into, out = connection_of(moves[received], lanes), connection_of(moves[sent], lanes)
        # Both connections keep their order, so what is fused must keep it too.
        if blocks.get(into) == out and last.get(into, -1) < received:
            passed_on[received] = sent
            last[into] = received
    return Fusions(added, passed_on, blocks)


def is_dead(moves: list[Move], order: Order, half: int, known: set[int]) -> bool:
    """Whether nobody but those known ever uses what a half wrote."""
    move = moves[half // 2]
    gone = move.target[0] == Buffer.SCRATCH or order.overwritten[half] == move.count
    return gone and known.issuperset(order.readers[half])


def _additions(moves: list[Move], order: Order) -> dict[int, Added]:
    """Local sums of what was received just for them."""
    found: dict[int, Added] = {}
    for number, move in enumerate(moves):
        if not (move.local and move.reduce):
            continue
        half = 2 * number + 1
        for message, place, operand in (
            (order.added_to[half], move.target, move.source),  # to what was received
            (order.read[half], move.source, move.target),  # of what was received
        ):
            into = message // 2
            if message < 0 or moves[into].local or moves[into].reduce or into in found:
                continue
            if moves[into].target != place or moves[into].count != move.count:
                continue
            alone = set(order.readers[message]) == {half}
            fits = alone and (place == move.target or is_dead(moves, order, message, {half}))
            if fits and not _overlap(operand, move.target, move.count):
                found[into] = Added(number, operand)
                break
    return found


def _overlap(first: Place, second: Place, count: int) -> bool:
    """Whether two places share some slots, but not all."""
    return first[0] == second[0] and 0 < abs(first[1] - second[1]) < count


def _forwards(moves: list[Move], order: Order, added: dict[int, Added]) -> dict[int, int]:
    """Of messages that send just what came in one message: that one.

    A copy that is passed on has one destination, which says where it is stored here and, to
    those who hold sends against receives, where the receiver stores it: both must be the same.
    """
    stored = {2 * sum_.move + 1: message for message, sum_ in added.items()}
    found: dict[int, int] = {}
    for number, move in enumerate(moves):
        writer = order.read[2 * number]
        if move.local or writer < 0:
            continue
        received, target = stored.get(writer, writer // 2), moves[writer // 2].target
        if moves[received].local or (received in added) != (writer in stored):
            continue
        sums = writer in stored or moves[received].reduce
        stays = target == move.source and moves[received].count == move.count
        if stays and (sums or target == move.target):
            found[number] = received
    return found


def _partners(
    moves: list[Move], candidates: dict[int, int], lanes: list[int]
) -> dict[Connection, Connection]:
    """Connections that share a thread block: those most of whose messages go on in the other.

    Sharing a block puts all messages of both in one line, so it must be worth it. Of partners
    equally good the first to be sent to is taken: what is fused goes ahead of the others.
    """
    length = Counter(connection_of(move, lanes) for move in moves if not move.local)
    weight: Counter[tuple[Connection, Connection]] = Counter()
    for sent, received in sorted(candidates.items()):
        weight[connection_of(moves[received], lanes), connection_of(moves[sent], lanes)] += 1
    partners: dict[Connection, Connection] = {}
    taken: set[Connection] = set()
    for (into, out), count in sorted(weight.items(), key=lambda item: -item[1]):
        worth = 2 * count >= max(length[into], length[out])
        if worth and into not in partners and out not in taken:
            partners[into] = out
            taken.add(out)
    return partners
