"""What each operation of a plan does, as actions and events."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from weft.algorithm import Cells, Program
from weft.errors import InputError, unknown_name
from weft.formats.mscclpp.events import Events, Line, Meetings, Threads, Where, words
from weft.formats.mscclpp.executor import BUFFERS, MAX_BARRIERS, MEMORY, PORT, SIDES
from weft.formats.mscclpp.schema import Block, GpuPlan, Operation, Place, Plan, RemoteBuffer
from weft.formats.mscclpp.shapes import (
    BY_PORT,
    MOVES,
    NOT_RUN,
    ON_CHANNELS,
    OTHERS,
    SIGNALS,
    Shape,
)
from weft.formats.mscclpp.splitting import Cut
from weft.quoting import brief, quoted

T = TypeVar("T")
Switch = tuple[str, list[int]]  # a buffer's type, and GPUs


class Interpreter:
    """Reads the thread blocks of a plan, as a program; raises InputError, which names the place."""

    def __init__(self, plan: Plan, cut: Cut, cells: Cells) -> None:
        self.plan, self.cut, self.cells = plan, cut, cells
        # The cells of each buffer, by letter and GPU.
        self.slots = {
            letter: [row.tolist() for row in cells.slots[buffer]]
            for buffer, letter in BUFFERS.items()
        }
        self.events = Events()
        self.meetings = Meetings(self.events)
        self.sum: str | None = None  # what the plan's sums are: sum, min or max
        for gpu in plan.gpus:
            lines = _lines(gpu, len(plan.gpus))
            meeting = Counter(
                number
                for block in gpu.threadblocks
                for number in {op.barrier_id for op in block.operations() if op.name == "barrier"}
            )
            for block in gpu.threadblocks:
                reader = _BlockReader(self, gpu, block, lines, meeting)
                for number, operation in enumerate(block.ops):
                    reader.read(number, operation)
        self.meetings.settle([[s.init_value for s in gpu.semaphores] for gpu in plan.gpus])

    @property
    def program(self) -> Program:
        return self.events.program(self.cells)

    def event(self, event: int) -> str:
        return self.events.words(event)

    def cell(self, cell: int) -> str:
        gpu = int(self.cells.npu[cell])
        for letter, slots in self.slots.items():
            if cell in slots[gpu]:
                return f"{letter}[{slots[gpu].index(cell) // self.cut.fineness}] of GPU {gpu}"
        return f"a chunk of GPU {gpu}"


def _chosen(known: Sequence[T], numbers: Sequence[int], what: str) -> list[T]:
    """Those with some numbers of all that are known."""
    for number in numbers:
        if number >= len(known):
            raise InputError(f"{what} {number} of {len(known)}")
    return [known[number] for number in numbers]


def _lines(gpu: GpuPlan, gpus: int) -> dict[str, list[Line]]:
    """The channels of a GPU, by type: the k-th to a peer is the peer's k-th to it."""
    lines: dict[str, list[Line]] = {MEMORY: [], PORT: []}
    counts: Counter[tuple[str, int]] = Counter()
    for channel in gpu.channels:
        kind = channel.channel_type
        if kind == "switch":
            continue
        if kind not in lines:
            raise InputError(f"GPU {gpu.id}: a channel has type {quoted(kind)}")
        for peer in channel.connected_to:
            if peer >= gpus or peer == gpu.id:
                raise InputError(f"GPU {gpu.id}: a {kind} channel is connected to GPU {peer}")
            lines[kind].append((kind, gpu.id, peer, counts[kind, peer]))
            counts[kind, peer] += 1
    return lines


def _switches(gpu: GpuPlan, gpus: int) -> list[Switch]:
    """The switch channels of a GPU: of which buffer, and whose, its own first."""
    found = []
    for channel in gpu.channels:
        for group in channel.rank_groups if channel.channel_type == "switch" else ():
            ranks = group.ranks
            if gpu.id not in ranks or len(set(ranks)) < len(ranks) or max(ranks) >= gpus:
                raise InputError(
                    f"GPU {gpu.id}: a switch channel has ranks {brief(ranks)}; expected some of "
                    f"0 to {gpus - 1}, each once, with {gpu.id}"
                )
            others = [rank for rank in ranks if rank != gpu.id]
            found.append((channel.buffer_type, [gpu.id, *others]))
    return found


class _BlockReader:
    """Reads the operations of one thread block."""

    def __init__(
        self,
        parent: Interpreter,
        gpu: GpuPlan,
        block: Block,
        lines: dict[str, list[Line]],
        meeting: Counter[int | None],
    ) -> None:
        self.plan, self.cut, self.slots = parent.plan, parent.cut, parent.slots
        self.round: range | None = None  # which pieces a pipeline moves now
        self.events, self.meetings, self.parent = parent.events, parent.meetings, parent
        self.gpu, self.block, self.meeting = gpu, block, meeting
        self.threads = Threads(self.events, gpu.id, block.id)
        name = f"GPU {gpu.id}, thread block {block.id}"
        self.lines: dict[str, list[Line]] = {MEMORY: [], PORT: []}
        self.switches: list[Switch] = []
        for entry in block.channels:
            kind, ids = entry.channel_type, entry.channel_ids
            if kind == "switch":
                self.switches += _chosen(
                    _switches(gpu, len(self.plan.gpus)), ids, f"{name} uses switch channel"
                )
            if kind in lines:
                self.lines[kind] += _chosen(lines[kind], ids, f"{name} uses {kind} channel")
        self.remote: defaultdict[str | None, list[RemoteBuffer]] = defaultdict(list)
        for refs in block.remote_buffer_refs:
            self.remote[refs.access_channel_type] += _chosen(
                gpu.remote_buffers, refs.remote_buffer_ids, f"{name} uses remote buffer"
            )
        # What ports have been asked to do: event, by which thread, after which sync.
        self.queued: defaultdict[Line, list[tuple[int, int, int]]] = defaultdict(list)
        self.ports: dict[tuple[Line, int], list[int]] = {}  # chains, by line and thread

    def read(self, number: int, operation: Operation) -> None:
        where = (self.gpu.id, self.block.id, number)
        try:
            self._read(where, operation)
        except InputError as error:
            raise InputError(f"{words(where)} ({brief(operation.name)}): {error}") from None

    def _read(self, where: Where, operation: Operation) -> None:
        name = operation.name
        if name in MOVES:
            self._moves(where, operation, MOVES[name])
        elif name == "nop":
            self.threads.together(where)
        elif name == "barrier":
            self._barrier(where, operation)
        elif name in ON_CHANNELS:
            for thread, line in enumerate(self._channels(operation)):
                event = self.threads.single(thread, where)
                if name in SIGNALS:
                    self._signal(line, thread, event, where)
                elif name == "flush":
                    self._flush(line, thread, event)
                else:
                    kind, me, peer, which = line
                    self.meetings.waits[kind, peer, me, which].append(event)
        elif name in ("sem_acquire", "sem_release"):
            self._semaphores(where, operation)
        elif name == "pipeline":
            self._pipeline(where, operation)
        elif name in NOT_RUN:
            raise InputError("MSCCL++'s executor does not run this operation; expected glres")
        else:
            raise unknown_name("operation", name[:20], [*MOVES, *ON_CHANNELS, *OTHERS])

    def _pipeline(self, where: Where, pipeline: Operation) -> None:
        """Its operations one after the other, for one round of all their data, then the next."""
        rounds = pipeline.iter_context
        if rounds is None or not rounds.unit_size:
            raise InputError("it has no iter_context with a unit_size above 0")
        if self.round is not None:
            raise InputError("it is in a pipeline itself")
        width, end = self.cut.pieces(rounds.unit_size), rounds.num_chunks * self.cut.fineness
        for first in range(0, end, width):
            self.round = range(first, first + width)
            for operation in pipeline.ops:
                try:
                    self._read(where, operation)
                except InputError as error:
                    raise InputError(f"{operation.name[:20]}: {error}") from None
        self.round = None

    def _barrier(self, where: Where, operation: Operation) -> None:
        number, count = operation.barrier_id, operation.num_threadblocks
        if number is None or number >= MAX_BARRIERS:
            raise InputError(f"barrier_id {number}; expected 0 to {MAX_BARRIERS - 1}")
        met = self.meeting[number]
        if count != met:
            raise InputError(f"num_threadblocks is {count}, and {met} meet at barrier {number}")
        before, after = self.threads.together(where), self.threads.together(where)
        blocks = self.meetings.barriers.setdefault((self.gpu.id, number), {})
        blocks.setdefault(self.block.id, []).append((before, after))

    def _semaphores(self, where: Where, operation: Operation) -> None:
        acquires = operation.name == "sem_acquire"
        held = self.meetings.acquires if acquires else self.meetings.releases
        if not operation.semaphore_ids:
            raise InputError("no semaphore_ids")
        _chosen(self.gpu.semaphores, operation.semaphore_ids, "semaphore")
        for thread, number in enumerate(operation.semaphore_ids):
            held[self.gpu.id, number].append(self.threads.single(thread, where))

    def _channels(self, operation: Operation) -> list[Line]:
        kind = operation.channel_type
        if kind not in self.lines:
            raise InputError(f"channel_type is {quoted(kind)}; expected memory or port")
        if not operation.channel_ids:
            raise InputError("no channel_ids")
        return _chosen(self.lines[kind], operation.channel_ids, f"{kind} channel")

    def _signal(self, line: Line, thread: int, request: int, where: Where) -> None:
        """A port signals when it has done what it was asked for before."""
        event = request
        if line[0] == PORT:
            event = self.events.event(where)
            self.events.order(request, event)
            self._flush(line, thread, event)
            self._queue(line, thread, event)
        self.meetings.signals[line].append(event)

    def _queue(self, line: Line, thread: int, *events: int) -> None:
        """What a thread tells a port happens in that order."""
        if (line, thread) not in self.ports:
            self.events.chains.append(self.ports.setdefault((line, thread), []))
        self.ports[line, thread] += events
        self.queued[line].append((events[-1], thread, self.threads.last))

    def _flush(self, line: Line, thread: int, event: int) -> None:
        """An event after all that a port was surely asked for before a thread comes to it."""
        later = []
        for earlier, teller, sync in self.queued[line]:
            if teller == thread or sync != self.threads.last:
                self.events.order(earlier, event)
            else:
                later.append((earlier, teller, sync))
        self.queued[line] = later

    def _moves(self, where: Where, operation: Operation, shape: Shape) -> None:
        if operation.reduce_op not in ("sum", "min", "max"):
            raise InputError(
                f"reduce_op is {quoted(operation.reduce_op)}; expected sum, min or max"
            )
        if shape.adds:
            before = self.parent.sum = self.parent.sum or operation.reduce_op
            if before != operation.reduce_op:
                raise InputError(
                    f"reduce_op is {operation.reduce_op}, but {before} in operations before; a "
                    "collective has one"
                )
        sources = self._sides(operation, operation.src_buff, shape.sources, "source")
        targets = self._sides(operation, operation.dst_buff, shape.targets, "destination")
        if shape.adds or shape.spreads:
            flows = [(sources, targets)]
        elif len(sources) == len(targets):
            flows = [([source], [target]) for source, target in zip(sources, targets, strict=True)]
        else:
            raise InputError(f"it has {len(sources)} sources for {len(targets)} destinations")
        for ins, outs in flows:
            if any(len(side.cells) != len(outs[0].cells) for side in (*ins, *outs)):
                raise InputError("a source and its destination differ in size")
        by_port = operation.channel_type == PORT and operation.name in BY_PORT
        if shape.signals and not by_port:
            raise InputError("it puts and signals, which only port channels do")
        if by_port:
            self._by_port(where, operation, shape, sources, targets)
            return
        for ins, outs in flows:
            self.threads.move(self._flow(where, ins, outs))

    def _by_port(
        self,
        where: Where,
        operation: Operation,
        shape: Shape,
        sources: list[_Range],
        targets: list[_Range],
    ) -> None:
        lines = self._channels(operation)
        if len(lines) != len(targets):
            raise InputError(f"it has {len(lines)} channels for {len(targets)} destinations")
        if shape.adds:  # packets are read by all threads, which then wait for each other
            self.threads.together(where)
            sources = sources * len(targets)
        for thread, (line, source, target) in enumerate(zip(lines, sources, targets, strict=True)):
            request = self.threads.single(thread, where)
            for action in self._flow(where, [source], [target]):
                self.events.order(request, 2 * action)
                self._queue(line, thread, 2 * action, 2 * action + 1)
            if shape.signals:
                self._signal(line, thread, request, where)
            if shape.flushes:
                self._flush(line, thread, self.threads.single(thread, where))
        for place, line in zip(operation.dst_buff, lines, strict=True):
            peer = self._remote(operation, place)[0]
            if peer != line[2]:
                raise InputError(f"its channel leads to GPU {line[2]}, its buffer to GPU {peer}")

    def _flow(self, where: Where, ins: list[_Range], outs: list[_Range]) -> range:
        """Actions that add up sources and give the sum to all targets, chunk by chunk."""
        first, *further = outs
        if len(ins) == 1 and not further and not ins[0].packets and not first.packets:
            return self.events.copies(ins[0].cells, first.cells, where)
        begin = len(self.events.src)
        for at, cell in enumerate(first.cells):
            held = [source.cells[at] for source in ins]
            base = held.index(cell) if cell in held else 0
            if len(ins) > 1 and ins[base].packets:
                raise InputError("it would write its sum over packets that it adds")
            # The sum grows in the target, so it starts from the source that lies there, if any.
            order = [base, *(i for i in range(len(ins)) if i != base)]
            stays = held[base] == cell and len(ins) == 1  # what is only spread lies there already
            for place, i in enumerate(order):
                if held[i] == cell and place == 0 and len(ins) + len(further) > 1:
                    continue
                action = self.events.action(held[i], cell, where, reduce=place > 0)
                if ins[i].packets:
                    self.meetings.readers.append((held[i], 2 * action))
            if first.packets and not stays:
                self.meetings.packets[cell].append(2 * action + 1)
            for target in further:
                action = self.events.action(cell, target.cells[at], where)
                if stays and ins[0].packets:
                    self.meetings.readers.append((cell, 2 * action))
                if target.packets:
                    self.meetings.packets[target.cells[at]].append(2 * action + 1)
        return range(begin, len(self.events.src))

    def _sides(
        self, operation: Operation, places: Sequence[Place], kinds: str, side: str
    ) -> list[_Range]:
        found, more = [], kinds.endswith("+")
        kinds = kinds.rstrip("+")
        if len(places) < len(kinds) or (len(places) > len(kinds) and not more):
            expected = f"{len(kinds)}{' or more' if more else ''}"
            raise InputError(f"it has {len(places)} {side}s; expected {expected}")
        for number, place in enumerate(places):
            kind = kinds[min(number, len(kinds) - 1)]
            try:
                found += self._ranges(operation, place, kind)
            except InputError as error:
                raise InputError(f"{side} {number} {error}") from None
        return found

    def _ranges(self, operation: Operation, place: Place, kind: str) -> list[_Range]:
        """The cells of a place; in a switch, of each GPU, this one's first."""
        packets = kind.isupper()
        if kind in "wW":
            number = place.switch_channel_id
            if number is None or number >= len(self.switches):
                raise InputError(
                    f"has switch_channel_id {number}; the thread block has {len(self.switches)} "
                    "switch channels"
                )
            buffer, ranks = self.switches[number]
            return [self._range(operation, place, (rank, buffer), packets) for rank in ranks]
        if kind in "rR":
            return [self._range(operation, place, self._remote(operation, place), packets)]
        if place.type is None or (place.buffer_id, place.switch_channel_id) != (None, None):
            raise InputError("must be of this GPU, with a type")
        return [self._range(operation, place, (self.gpu.id, place.type), packets)]

    def _range(
        self, operation: Operation, place: Place, where: tuple[int, str], packets: bool
    ) -> _Range:
        gpu, buffer = where
        if buffer not in SIDES:
            raise InputError(f"has type {quoted(buffer)}; expected i, o or s")
        if packets and buffer != "s":
            raise InputError("has packets, which only scratch holds")
        length = getattr(self.plan.gpus[gpu], SIDES[buffer])
        if place.size == 0 or place.index + place.size > length:
            raise InputError(
                f"is {buffer}[{place.index}:{place.index + place.size}] of GPU {gpu}, whose buffer "
                f"has {length} chunks"
            )
        first, count = place.index * self.cut.fineness, place.size * self.cut.fineness
        if self.round is not None:
            if operation.tbg_info is not None or packets:
                raise InputError("is of a group of thread blocks or of packets, in a pipeline")
            if self.round.start >= count:
                raise InputError(f"has {place.size} chunks, fewer than its pipeline")
            first, count = first + self.round.start, min(count - self.round.start, len(self.round))
        elif operation.tbg_info is not None:
            part, parts = operation.tbg_info.tb_id, operation.tbg_info.tbg_size
            if part >= parts:
                raise InputError(f"is part {part} of {parts}")
            first, count = first + count * part // parts, count // parts
        return _Range(self.slots[buffer][gpu][first : first + count], packets)

    def _remote(self, operation: Operation, place: Place) -> tuple[int, str]:
        """GPU and type of a buffer of another GPU."""
        mine = self.remote[operation.channel_type]
        if place.buffer_id is None or place.buffer_id >= len(mine):
            raise InputError(
                f"has buffer_id {place.buffer_id}; the thread block reaches {len(mine)} buffers by "
                f"{brief(operation.channel_type)} channels"
            )
        buffer = mine[place.buffer_id]
        if buffer.rank >= len(self.plan.gpus) or buffer.rank == self.gpu.id:
            raise InputError(f"is a buffer of GPU {buffer.rank}")
        return buffer.rank, buffer.type


class _Range(NamedTuple):
    """Cells that an operation uses, and whether they hold packets."""

    cells: list[int]
    packets: bool
