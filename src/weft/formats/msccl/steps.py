"""What the steps of a file may say, and which sends and receives belong together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Buffer
from weft.formats.msccl.document import UNSAID, Document, Int64, Type
from weft.ragged import positions

Bool = NDArray[np.bool_]

MAX_GPUS = 1 << 16


def _of_types(*kinds: Type) -> Bool:
    """A table to look up by type."""
    return np.isin(np.arange(len(Type)), kinds)


SENDS = _of_types(Type.S, Type.RCS, Type.RRS, Type.RRCS)
RECEIVES = _of_types(Type.R, Type.RCS, Type.RRS, Type.RRC, Type.RRCS)
ADDS = _of_types(Type.RRS, Type.RRC, Type.RRCS, Type.RE)
READS_SRC = _of_types(Type.S, Type.RRS, Type.RRC, Type.RRCS, Type.RE, Type.CPY)
WRITES_DST = _of_types(Type.R, Type.RCS, Type.RRC, Type.RRCS, Type.RE, Type.CPY)

_NAMES = {Buffer.INPUT: "i_chunks", Buffer.OUTPUT: "o_chunks", Buffer.SCRATCH: "s_chunks"}


def check(document: Document) -> None:
    """Raise for what no runtime would load."""
    _check_algo(document)
    _check_blocks(document)
    _check_steps(document)
    _check_slots(document)


def _check_algo(document: Document) -> None:
    if document.number("ngpus") != len(document.gpus):
        document.fail(
            "<algo>", f"has ngpus={document.number('ngpus')}, but {len(document.gpus)} GPUs follow"
        )
    if not 0 < len(document.gpus) <= MAX_GPUS:
        document.fail("<algo>", f"has {len(document.gpus)} GPUs; expected 1 to {MAX_GPUS}")
    for buffer, name in _NAMES.items():
        wrong = np.flatnonzero(document.gpus.length(buffer) < 0)
        if len(wrong):
            document.fail(f"GPU {wrong[0]}", f"has a negative {name}")


def _check_blocks(document: Document) -> None:
    blocks, gpus = document.blocks, len(document.gpus)
    for peer, word in ((blocks.send, "sends to"), (blocks.receive, "receives from")):
        for block in np.flatnonzero((peer < -1) | (peer >= gpus))[:1]:
            document.fail(
                document.block_place(block),
                f"{word} GPU {peer[block]}; expected 0 to {gpus - 1}, or -1 for none",
            )
        for block in np.flatnonzero(peer == blocks.gpu)[:1]:
            document.fail(document.block_place(block), f"{word} its own GPU")
    channels = document.number("nchannels")
    alone = (blocks.send == -1) & (blocks.receive == -1) & (blocks.channel == -1)
    for block in np.flatnonzero(((blocks.channel < 0) | (blocks.channel >= channels)) & ~alone)[:1]:
        document.fail(
            document.block_place(block),
            f"uses channel {blocks.channel[block]}, but nchannels={channels}",
        )


def _check_steps(document: Document) -> None:
    steps, blocks = document.steps, document.blocks
    position = np.arange(len(steps)) - blocks.first[steps.block]
    for step in np.flatnonzero((steps.number != position) & (steps.number != UNSAID))[:1]:
        document.fail_at(step, f"has s={steps.number[step]}; steps are numbered in order from 0")
    for step in np.flatnonzero((steps.count < 1) & (steps.type != Type.NOP))[:1]:
        document.fail_at(step, f"has cnt={steps.count[step]}; expected 1 or more")
    for step in np.flatnonzero(~np.isin(steps.has_dep, (0, 1, UNSAID)))[:1]:
        document.fail_at(step, f"has hasdep={steps.has_dep[step]}; expected 0 or 1")
    for does, peer, word in ((SENDS, blocks.send, "sends"), (RECEIVES, blocks.receive, "receives")):
        for step in np.flatnonzero(does[steps.type] & (peer[steps.block] < 0))[:1]:
            document.fail_at(step, f"{word}, but its thread block has {word[:4]}=-1")


def _check_slots(document: Document) -> None:
    """Every slot a step uses must be in its buffer."""
    steps = document.steps
    gpu = document.blocks.gpu[steps.block]
    for uses, buffer, first, name in (
        (READS_SRC, steps.src_buffer, steps.src, "src"),
        (WRITES_DST, steps.dst_buffer, steps.dst, "dst"),
    ):
        used = uses[steps.type]
        for step in np.flatnonzero(used & ((buffer == UNSAID) | (first == UNSAID)))[:1]:
            what = "buf" if buffer[step] == UNSAID else "off"
            document.fail_at(step, f"has no {name}{what}")
        for kind, label in _NAMES.items():
            length = document.gpus.length(kind)[gpu]
            out = used & (buffer == kind) & ((first < 0) | (first + steps.count > length))
            for step in np.flatnonzero(out)[:1]:
                last = first[step] + steps.count[step] - 1
                document.fail_at(
                    step,
                    f"uses {kind.name.lower()}[{first[step]}..{last}], but GPU {gpu[step]} has "
                    f"{label}={length[step]}",
                )


def match(document: Document) -> tuple[Int64, Int64]:
    """The steps that send and receive each message: k-th sends with k-th receives of a connection.

    A GPU's messages are in the order of its thread blocks: of several that could go at once,
    simulators start the first.
    """
    steps, blocks = document.steps, document.blocks
    outgoing, incoming = _connections(document)
    send, send_key = _by_connection(document, SENDS, outgoing, "sends to", blocks.send)
    receive, receive_key = _by_connection(
        document, RECEIVES, incoming, "receives from", blocks.receive
    )
    for key in np.setxor1d(send_key, receive_key, assume_unique=True)[:1]:
        found, lacks = receive[receive_key == key], "no step sends it"
        if not len(found):
            found, lacks = send[send_key == key], "no step receives it"
        document.fail_at(found[0], f"has a message too many on its connection: {lacks}")
    for at in np.flatnonzero(steps.count[send] != steps.count[receive])[:1]:
        document.fail_at(
            send[at],
            f"sends cnt={steps.count[send[at]]}, but {document.place(receive[at])} receives "
            f"cnt={steps.count[receive[at]]}",
        )
    order = np.argsort(send)
    return send[order], receive[order]


def _connections(document: Document) -> tuple[Int64, Int64]:
    """Numbers for the connections each block sends and receives on: equal at both ends."""
    blocks = document.blocks
    gpus = len(document.gpus)
    _, channel = np.unique(blocks.channel, return_inverse=True)
    channels = int(channel.max(initial=0)) + 1
    ends = [(blocks.gpu, blocks.send), (blocks.receive, blocks.gpu)]
    keys = [((src + 1) * (gpus + 1) + dst + 1) * channels + channel for src, dst in ends]
    _, number = np.unique(np.concatenate(keys), return_inverse=True)
    return number[: len(blocks)], number[len(blocks) :]


def _by_connection(
    document: Document, does: Bool, connection: Int64, word: str, peer: Int64
) -> tuple[Int64, Int64]:
    """Steps sorted by connection, and a number for each connection and message on it."""
    steps, blocks = document.steps, document.blocks
    found = np.flatnonzero(does[steps.type])
    used = np.unique(steps.block[found])
    _, first, counts = np.unique(connection[used], return_index=True, return_counts=True)
    for at in first[counts > 1][:1]:
        other = used[np.flatnonzero(connection[used] == connection[used[at]])[1]]
        document.fail(
            document.block_place(other),
            f"{word} GPU {peer[other]} on channel {blocks.channel[other]}, as thread block "
            f"{blocks.number[used[at]]} does; a connection has one block at each end",
        )
    key = connection[steps.block[found]]
    order = np.argsort(key, kind="stable")
    found, key = found[order], key[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    turn = positions(np.diff(starts, append=len(key)))
    return found, key * (len(steps) + 1) + turn


def waits(document: Document) -> tuple[Int64, Int64]:
    """Which step waits for the end of which, as a runtime sees it.

    A step is done for others when a step with hasdep at or after it is done; a nop hands its
    dependency on to the step that follows, which must have one too.
    """
    steps, blocks = document.steps, document.blocks
    waiting = np.flatnonzero(steps.dep_block >= 0)
    owner = steps.block[waiting]
    gpu_first = np.searchsorted(blocks.gpu, blocks.gpu[owner])
    gpu_last = np.searchsorted(blocks.gpu, blocks.gpu[owner], side="right")
    target = gpu_first + steps.dep_block[waiting]
    for at in np.flatnonzero(target >= gpu_last)[:1]:
        document.fail_at(
            waiting[at],
            f"waits for thread block {steps.dep_block[waiting[at]]}, which GPU "
            f"{blocks.gpu[owner[at]]} does not have",
        )
    ends = np.append(blocks.first, len(steps))[1:]
    number = steps.dep_step[waiting]
    for at in np.flatnonzero((number < 0) | (number >= (ends - blocks.first)[target]))[:1]:
        document.fail_at(
            waiting[at],
            f"waits for step {number[at]} of thread block {steps.dep_block[waiting[at]]}, which "
            f"has {(ends - blocks.first)[target[at]]} steps",
        )
    wanted = blocks.first[target] + number
    after = _following((steps.has_dep != 0) & (steps.type != Type.NOP), wanted)
    for at in np.flatnonzero(after >= ends[target])[:1]:
        document.fail_at(
            waiting[at],
            f"waits for {document.place(wanted[at])}, but no step from there on has hasdep=1",
        )
    _check_nops(document)
    return _following(steps.type != Type.NOP, waiting), after


def _following(holds: Bool, steps: Int64) -> Int64:
    """The first from each step on for which something holds; the number of steps if none does."""
    found = np.append(np.flatnonzero(holds), len(holds))
    following: Int64 = found[np.searchsorted(found, steps)]
    return following


def _check_nops(document: Document) -> None:
    steps = document.steps
    is_nop = steps.type == Type.NOP
    for step in np.flatnonzero(is_nop & (steps.dep_block < 0))[:1]:
        document.fail_at(step, "is a nop that waits for nothing")
    nops = np.flatnonzero(is_nop)
    heirs = _following(~is_nop, nops)
    blocks, deps = np.append(steps.block, -1), np.append(steps.dep_block, -1)
    for at in np.flatnonzero((blocks[heirs] != steps.block[nops]) | (deps[heirs] < 0))[:1]:
        document.fail_at(nops[at], "is a nop that is not followed by a step with a dependency")
