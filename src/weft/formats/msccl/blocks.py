"""Thread blocks: which steps each has, in which order."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from weft.formats.msccl.dialects import Dialect
from weft.formats.msccl.document import Type
from weft.formats.msccl.fusion import Connection, Fusions, connection_of, is_dead
from weft.formats.msccl.moves import Move, Order, Place


@dataclass(frozen=True)
class Step:
    """What a thread block does at once; `receive` and `send` are messages, -1 if there is none."""

    type: Type
    source: Place
    target: Place
    count: int
    halves: tuple[int, ...]
    receive: int = -1
    send: int = -1


@dataclass(eq=False)
class Block:
    """A thread block: steps in order, and the connections they receive from and send to."""

    gpu: int
    receives: Connection | None = None
    sends: Connection | None = None
    channel: int = 0
    steps: list[Step] = field(default_factory=list)


def blocks_of(
    moves: list[Move], order: Order, fusions: Fusions, lanes: list[int], most: int
) -> list[Block]:
    """The blocks of all GPUs: one for each end of a connection, and one for local moves.

    All follow the order of the moves. Where fusions join the ends of two connections, a fused
    step comes after all that is before it on either. A GPU with more than `most` blocks sends
    and receives in the same ones.
    """
    messages: dict[Connection, list[int]] = defaultdict(list)
    absorbed = {sum_.move for sum_ in fusions.added.values()}
    local: dict[int, list[int]] = defaultdict(list)
    for number, move in enumerate(moves):
        if not move.local:
            messages[connection_of(move, lanes)].append(number)
        elif number not in absorbed:
            local[move.src].append(number)
    steps = _Steps(moves, order, fusions)
    joined = {
        into: out
        for into, out in fusions.blocks.items()
        if any(message in fusions.passed_on for message in messages[into])
    }
    blocks = [
        Block(into[1], into, out, steps=steps.line(messages[into], messages[out]))
        for into, out in joined.items()
    ]
    senders = set(joined.values())
    for connection, line in messages.items():
        if connection not in senders:
            blocks.append(Block(connection[0], sends=connection, steps=steps.line([], line)))
        if connection not in joined:
            blocks.append(Block(connection[1], receives=connection, steps=steps.line(line, [])))
    blocks += [Block(gpu, steps=[steps.alone(m) for m in line]) for gpu, line in local.items()]
    return _shared(blocks, most)


def _shared(blocks: list[Block], most: int) -> list[Block]:
    """Let GPUs with too many blocks send and receive in the same ones.

    Short ones come together first, and before all others those of one peer: to put other
    connections in one block ties more and more of them to one channel.
    """
    by_gpu: dict[int, list[Block]] = defaultdict(list)
    for block in blocks:
        by_gpu[block.gpu].append(block)
    gone: set[int] = set()
    for mine in by_gpu.values():
        excess = len(mine) - most
        senders = {b.sends: b for b in mine if b.sends is not None and b.receives is None}
        receivers = {  # by the way back of what they receive on
            (b.receives[1], b.receives[0], b.receives[2]): b
            for b in mine
            if b.receives is not None and b.sends is None
        }
        for back in sorted(receivers, key=lambda c: _extra(receivers[c], senders.get(c))):
            if excess <= 0 or not senders:
                break
            # Connections of one lane can be on one channel together.
            near = back if back in senders else min(senders, key=lambda c: (c[2] != back[2], c))
            block, other = receivers[back], senders.pop(near)
            block.sends = other.sends
            _put_in(block, other)
            gone.add(id(other))
            excess -= 1
        local = next((b for b in mine if b.sends is None and b.receives is None), None)
        free = [b for b in mine if b is not local and id(b) not in gone and _in_order(b)]
        if excess > 0 and local is not None and free:
            _put_in(min(free, key=lambda block: len(block.steps)), local)
            gone.add(id(local))
    return [block for block in blocks if id(block) not in gone]


def _put_in(block: Block, other: Block) -> None:
    block.steps = sorted(block.steps + other.steps, key=lambda step: step.halves[0])


def _in_order(block: Block) -> bool:
    """Whether the steps of a block follow the order of the moves: none is sent on."""
    return not any(step.receive >= 0 and step.send >= 0 for step in block.steps)


def _extra(block: Block, same_peer: Block | None) -> tuple[bool, int]:
    """Whether a block could only share with one of another peer, and how long both would be."""
    return same_peer is None, len(block.steps) + len(same_peer.steps if same_peer else ())


def assign_channels(blocks: list[Block], dialect: Dialect) -> bool:
    """Give every block a channel; both ends of a connection have the same. Whether that went.

    Blocks that send and receive tie two connections to one channel. On a channel a GPU has so
    many peers, and sends to each only once.
    """
    parent: dict[Connection, Connection] = {}

    def root(connection: Connection) -> Connection:
        parent.setdefault(connection, connection)
        while parent[connection] != connection:
            parent[connection] = parent[parent[connection]]
            connection = parent[connection]
        return connection

    for block in blocks:
        ends = [root(c) for c in (block.receives, block.sends) if c is not None]
        if len(ends) == 2:
            parent[max(ends)] = min(ends)
    tied: dict[Connection, list[Connection]] = defaultdict(list)
    for connection in parent:
        tied[root(connection)].append(connection)
    channels = [_Channel(dialect.peers) for _ in range(dialect.channels)]
    found: dict[Connection, int] = {}
    for group in sorted(tied.values(), key=lambda group: (-len(group), group)):
        number = next((n for n, channel in enumerate(channels) if channel.take(group)), None)
        if number is None:
            return False
        found.update(dict.fromkeys(group, number))
    for block in blocks:
        block.channel = found.get(block.receives or block.sends or (-1, -1, -1), 0)
    return True


class _Channel:
    """The connections of one channel."""

    def __init__(self, peers: int) -> None:
        self.peers = peers
        self.ends: Counter[tuple[str, int]] = Counter()  # what a GPU does, and which
        self.pairs: set[tuple[int, int]] = set()

    def take(self, group: list[Connection]) -> bool:
        """Take connections if there is room for all of them."""
        pairs = {(src, dst) for src, dst, _ in group}
        if len(pairs) < len(group) or pairs & self.pairs:
            return False
        ends = Counter(e for src, dst, _ in group for e in (("sends", src), ("receives", dst)))
        if any(self.ends[end] + count > self.peers for end, count in ends.items()):
            return False
        self.ends.update(ends)
        self.pairs |= pairs
        return True


class _Steps:
    """Makes steps of moves and their fusions."""

    def __init__(self, moves: list[Move], order: Order, fusions: Fusions) -> None:
        self.moves, self.order, self.fusions = moves, order, fusions
        self._receiving: dict[int, Step] = {}

    def line(self, received: list[int], sent: list[int]) -> list[Step]:
        """Receives and sends in the order of the moves, between fused steps."""
        places = {message: at for at, message in enumerate(sent)}
        steps, waiting, done = [], [], 0
        for message in received:
            onward = self.fusions.passed_on.get(message, -1)
            if onward not in places:
                waiting.append(message)
                continue
            steps += self.between(waiting, sent[done : places[onward]])
            steps.append(self.receiving(message))
            waiting, done = [], places[onward] + 1
        return steps + self.between(waiting, sent[done:])

    def between(self, received: list[int], sent: list[int]) -> list[Step]:
        halves = sorted([2 * m + 1 for m in received] + [2 * m for m in sent])
        return [self.receiving(h // 2) if h % 2 else self.sending(h // 2) for h in halves]

    def sending(self, message: int) -> Step:
        move = self.moves[message]
        there = self.receiving(message).target
        return Step(Type.S, move.source, there, move.count, (2 * message,), send=message)

    def receiving(self, message: int) -> Step:
        """The step that receives a message; both ends of a connection want to know it."""
        if message not in self._receiving:
            self._receiving[message] = self._received(message)
        return self._receiving[message]

    def _received(self, message: int) -> Step:
        move, sum_ = self.moves[message], self.fusions.added.get(message)
        onward = self.fusions.passed_on.get(message, -1)
        # What adds nothing reads nothing here: it names where the sender has it, as MSCCLang does.
        source = move.target if move.reduce else move.source
        target, stored = move.target, 2 * message + 1
        halves: tuple[int, ...] = (stored,)
        if sum_ is not None:
            source, target = sum_.operand, self.moves[sum_.move].target
            stored = 2 * sum_.move + 1
            halves = (*halves, stored)
        adds = sum_ is not None or move.reduce
        kind = Type.RRC if adds else Type.R
        if onward >= 0:
            halves = (*halves, 2 * onward)
            kind = Type.RRCS if adds else Type.RCS
            if adds and is_dead(self.moves, self.order, stored, {2 * onward}):
                kind, target = Type.RRS, source
        return Step(kind, source, target, move.count, halves, message, onward)

    def alone(self, number: int) -> Step:
        move = self.moves[number]
        kind = Type.RE if move.reduce else Type.CPY
        return Step(kind, move.source, move.target, move.count, (2 * number + 1,))
