"""Runs MSCCL-XML as a runtime would, on symbolic data; shares nothing with the package.

Thread blocks take turns at random. A chunk's value is a tuple of its contributions. A connection
holds so many messages; a step that cannot go on waits, and if all wait, the machine is stuck.
"""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from collections import deque

MARK = "nothing"


class StuckError(Exception):
    """Every thread block waits."""


class WrongError(Exception):
    """A result is not what the collective promises."""


class Block:
    def __init__(self, machine, gpu, element):
        self.machine, self.gpu = machine, gpu
        self.send, self.recv = int(element.get("send")), int(element.get("recv"))
        self.chan = element.get("chan")
        self.steps = [dict(step.attrib, at=i) for i, step in enumerate(element)]
        self.position = self.unit = 0
        self.flag = -1

    @property
    def done(self):
        return self.position == len(self.steps)

    def waits(self, step):
        if self.unit or int(step["depid"]) < 0:
            return False
        return self.machine.blocks[self.gpu][int(step["depid"])].flag < int(step["deps"])

    def turn(self):
        """Do one chunk of the present step, if that is possible."""
        if self.done:
            return False
        step = self.steps[self.position]
        if self.waits(step):
            return False
        kind = step["type"]
        if kind == "nop":
            self.advance(step, 0)
            return True
        machine = self.machine
        out = machine.pipe(self.gpu, self.send, self.chan) if kind in machine.SENDS else None
        incoming = (
            machine.pipe(self.recv, self.gpu, self.chan)
            if kind[0] == "r" and kind != "re"
            else None
        )
        if incoming is not None and not incoming:
            return False
        if out is not None and len(out) >= machine.slots:
            return False
        src, dst = (self.cell(step, end) for end in ("src", "dst"))
        value = incoming.popleft() if incoming is not None else None
        if kind in ("rrs", "rrc", "rrcs"):
            value = machine.add(value, machine.read(src))
        elif kind in ("s", "cpy"):
            value = machine.read(src)
        elif kind == "re":
            value = machine.add(machine.read(dst), machine.read(src))
        if kind in ("r", "rcs", "rrc", "rrcs", "cpy", "re"):
            machine.memory[dst] = value
        if out is not None:
            out.append(value)
        self.advance(step, int(step["cnt"]))
        return True

    def cell(self, step, end):
        return self.machine.cell(self.gpu, step[f"{end}buf"], int(step[f"{end}off"]) + self.unit)

    def advance(self, step, count):
        self.unit += 1
        if self.unit >= count:
            if step["hasdep"] == "1":
                self.flag = self.position
            self.position, self.unit = self.position + 1, 0


class Machine:
    SENDS = ("s", "rcs", "rrs", "rrcs")

    def __init__(self, text, slots, root=0):
        self.root, self.special = ET.fromstring(text), root
        self.slots, self.pipes, self.memory = slots, {}, {}
        self.n = int(self.root.get("ngpus"))
        self.chunks = int(self.root.get("nchunksperloop"))
        self.coll = self.root.get("coll").replace("_", "")
        self.in_place = self.root.get("inplace") == "1"
        self.blocks = {}
        for gpu in self.root:
            number = int(gpu.get("id"))
            found = {int(tb.get("id")): Block(self, number, tb) for tb in gpu if tb.tag == "tb"}
            assert sorted(found) == list(range(len(found)))
            self.blocks[number] = found
        assert sorted(self.blocks) == list(range(self.n))

    def pipe(self, src, dst, chan):
        assert src >= 0
        assert dst >= 0
        return self.pipes.setdefault((src, dst, chan), deque())

    def cell(self, gpu, buffer, index):
        """In place, input and output are one buffer, or one is a part of the other."""
        share = self.chunks // self.n
        if self.coll in ("gather", "scatter"):  # which count by share; the root has all of them
            share = self.chunks if gpu == self.special else 0
        if self.in_place and buffer == "i":
            part = self.coll in ("allgather", "gather")
            return (gpu, "o", index + gpu * share if part else index)
        if self.in_place and buffer == "o" and self.coll in ("reducescatter", "scatter"):
            return (gpu, "o", index + gpu * share)
        return (gpu, buffer, index)

    def read(self, cell):
        return self.memory.get(cell, (MARK, cell))

    @staticmethod
    def add(first, second):
        return tuple(sorted([*first, *second], key=repr))

    def run(self, seed):
        rng = random.Random(seed)
        blocks = [block for found in self.blocks.values() for block in found.values()]
        while any(not block.done for block in blocks):
            rng.shuffle(blocks)
            moved = False
            for block in blocks:
                for _ in range(rng.choice((1, 2, 1000))):
                    if not block.turn():
                        break
                    moved = True
            if not moved:
                raise StuckError(
                    [f"GPU {b.gpu}: {b.steps[b.position]}" for b in blocks if not b.done]
                )
        if any(self.pipes.values()):
            raise WrongError("messages are left over")

    def fill(self, contents):
        for (gpu, index), value in contents.items():
            self.memory[self.cell(gpu, "i", index)] = (value,)

    def check(self, results):
        for (gpu, index), wanted in results.items():
            found = self.read(self.cell(gpu, "o", index))
            if found != tuple(sorted(wanted, key=repr)):
                raise WrongError(f"GPU {gpu} output {index}: {found}, not {wanted}")


def promise(machine, root):
    """What each input holds at first, and each output at the end."""
    n, chunks = machine.n, machine.chunks
    ranks, k = range(n), max(chunks // n, 1)
    if machine.coll == "allreduce":
        first = {(g, c): (g, c) for g in ranks for c in range(chunks)}
        last = {(g, c): [(h, c) for h in ranks] for g in ranks for c in range(chunks)}
    elif machine.coll == "allgather":
        first = {(g, c): (g, c) for g in ranks for c in range(k)}
        last = {(g, h * k + c): [(h, c)] for g in ranks for h in ranks for c in range(k)}
    elif machine.coll == "reducescatter":
        first = {(g, c): (g, c) for g in ranks for c in range(chunks)}
        last = {(g, c): [(h, g * k + c) for h in ranks] for g in ranks for c in range(k)}
    elif machine.coll == "alltoall":
        first = {(g, c): (g, c) for g in ranks for c in range(chunks)}
        last = {(g, h * k + c): [(h, g * k + c)] for g in ranks for h in ranks for c in range(k)}
    elif machine.coll == "broadcast":
        first = {(root, c): (root, c) for c in range(chunks)}
        last = {(g, c): [(root, c)] for g in ranks for c in range(chunks)}
    elif machine.coll == "reduce":
        first = {(g, c): (g, c) for g in ranks for c in range(chunks)}
        last = {(root, c): [(h, c) for h in ranks] for c in range(chunks)}
    elif machine.coll == "gather":
        first = {(g, c): (g, c) for g in ranks for c in range(chunks)}
        last = {(root, h * chunks + c): [(h, c)] for h in ranks for c in range(chunks)}
    elif machine.coll == "scatter":
        first = {(root, c): (root, c) for c in range(chunks * n)}
        last = {(g, c): [(root, g * chunks + c)] for g in ranks for c in range(chunks)}
    else:
        raise NotImplementedError(machine.coll)
    return first, last


def run(text, *, root=0, seeds=range(3), slots=(2, 1000)):
    """Run it with every seed and number of slots per connection; raises if one fails."""
    for seed in seeds:
        for size in slots:
            machine = Machine(text, size, root)
            first, last = promise(machine, root)
            machine.fill(first)
            machine.run(seed)
            machine.check(last)
