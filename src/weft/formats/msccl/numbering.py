"""Thread blocks as a file has them: numbered, with a line for each step and each further wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from weft.algorithm import Buffer
from weft.algorithm.memory import Memory
from weft.errors import InputError
from weft.formats.msccl.blocks import Block, Step
from weft.formats.msccl.capacity import Messages, fewer_chunks, or_msccl
from weft.formats.msccl.dialects import FEWER_PEERS, MAX_FUSED_SUMS, Dialect
from weft.formats.msccl.document import BUFFERS, Type
from weft.formats.msccl.moves import Order, Place
from weft.formats.msccl.steps import READS_SRC, WRITES_DST
from weft.formats.msccl.waits import Spot, waits_of

_LETTERS = {buffer: letter for letter, buffer in BUFFERS.items()}
_NOP = Step(Type.NOP, (int(Buffer.INPUT), -1), (int(Buffer.OUTPUT), -1), 0, ())


@dataclass(frozen=True)
class Line:
    """A step of the file: what it does, what it waits for, and whether others wait for it."""

    step: Step
    wait: Spot
    awaited: bool


@dataclass(frozen=True, eq=False)
class Numbered:
    """The blocks of one GPU in the order of their numbers; `awaited` come first."""

    blocks: list[Block]
    lines: list[list[Line]]
    awaited: int

    @property
    def scratch(self) -> int:
        """How many slots of scratch the steps use."""
        steps = [step for block in self.blocks for step in block.steps]
        places = [(step.source, step.count) for step in steps if READS_SRC[step.type]]
        places += [(step.target, step.count) for step in steps if WRITES_DST[step.type]]
        ends = [slot + count for (buffer, slot), count in places if buffer == Buffer.SCRATCH]
        return max(ends, default=0)


def numbered(blocks: list[Block], order: Order) -> Numbered:
    """The blocks of a GPU, those for which others wait first: their numbers must be small.

    Otherwise in the order in which they begin: readers that must choose among them do it so.
    """
    waits = waits_of(blocks, order)
    awaited = {spot for block in waits for step in block for spot in step}
    heads = {block for block, _ in awaited}
    by = sorted(range(len(blocks)), key=lambda b: (b not in heads, blocks[b].steps[0].halves))
    # Where steps lie: before each are nops for all that it waits for but one.
    at = {(-1, -1): (-1, -1)}
    for number, b in enumerate(by):
        ends = accumulate(max(1, len(needed)) for needed in waits[b])
        at.update({(b, s): (number, end - 1) for s, end in enumerate(ends)})
    lines: list[list[Line]] = [[] for _ in by]
    for b, line in zip(by, lines, strict=True):
        for s, step in enumerate(blocks[b].steps):
            *further, last = (at[spot] for spot in waits[b][s] or [(-1, -1)])
            line += [Line(_NOP, spot, False) for spot in further]
            tells = (b, s) in awaited or _breaks_chain(blocks[b].steps, s)
            line.append(Line(step, last, tells))
    return Numbered([blocks[b] for b in by], lines, len(heads))


def _breaks_chain(steps: list[Step], at: int) -> bool:
    """Whether a runtime must be kept from doing a sum and the next at once.

    Runtimes do so with sums into one place up to the first that others wait for. They look
    neither at the lengths of the sums nor, once a thread block has had MAX_FUSED_SUMS, at how
    many there are, and have no room for more.
    """
    if at + 1 == len(steps):
        return False
    step, following = steps[at], steps[at + 1]
    chained = step.type == following.type == Type.RE and step.target == following.target
    return chained and (step.count != following.count or (at + 1) % MAX_FUSED_SUMS == 0)


def texts(numbered: Numbered) -> Iterator[str]:
    """The lines of a GPU's blocks."""
    for number, (block, lines) in enumerate(zip(numbered.blocks, numbered.lines, strict=True)):
        send = -1 if block.sends is None else block.sends[1]
        receive = -1 if block.receives is None else block.receives[0]
        yield f'    <tb id="{number}" send="{send}" recv="{receive}" chan="{block.channel}">'
        for position, line in enumerate(lines):
            step = line.step
            yield (
                f'      <step s="{position}" type="{step.type.name.lower()}" '
                f'{_place("src", step.source)} {_place("dst", step.target)} cnt="{step.count}" '
                f'depid="{line.wait[0]}" deps="{line.wait[1]}" hasdep="{int(line.awaited)}"/>'
            )
        yield "    </tb>"


def _place(end: str, place: Place) -> str:
    return f'{end}buf="{_LETTERS[place[0]]}" {end}off="{place[1]}"'


def check_limits(
    gpus: list[Numbered], dialect: Dialect, name: str, memory: Memory, messages: Messages
) -> None:
    """Raise for the first limit of a runtime that is exceeded."""
    other = or_msccl(name)
    for number, gpu in enumerate(gpus):
        blocks = [(f", thread block {b}", len(lines)) for b, lines in enumerate(gpu.lines)]
        elements = 1 + len(gpus) + len(gpu.blocks) + sum(map(len, gpu.lines))
        for part, count, what, most, instead in (
            *((part, count, "steps", dialect.steps, other) for part, count in blocks),
            ("", len(gpu.blocks), "thread blocks", dialect.blocks, other),
            ("", elements, "elements", dialect.nodes, ""),
        ):
            if count > most:
                raise InputError(
                    f"GPU {number}{part} has {count} {what}; {name} loads up to {most}; "
                    f"{fewer_chunks(memory, messages, dialect)}{instead}"
                )
        if gpu.awaited > dialect.waited_for:
            raise InputError(
                f"GPU {number} has {gpu.awaited} thread blocks that others wait for; {name} can "
                f"name {dialect.waited_for}; {FEWER_PEERS}"
            )
