"""Runs a bundle on data: every message carries what its sender holds when it is started."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from astra_model import COMP, RECV, SEND, attributes, run_bundle

from weft.algorithm import Algorithm
from weft.export.astra_sim import chosen

Held = Counter  # of contributions, by the NPU that gave them


class Data:
    """What lies at each place of each rank; a trace's tags say which message is which."""

    def __init__(self, algorithm: Algorithm, form) -> None:
        self.rows, self.parts = form.rows, range(form.parts)
        self.chunks = algorithm.chunks
        self.held: dict[tuple[int, int], Held] = {}
        for chunk in range(len(self.chunks)):
            owners = self.chunks.members(self.chunks.pre[chunk]).tolist()
            for npu in owners:
                giver = npu if self.chunks.reduce[chunk] else min(owners)
                for part in self.parts:
                    self.held[npu, chunk * len(self.parts) + part] = Counter([giver])
        self.moving: dict[int, Held] = {}
        self.received: dict[tuple[int, int], int] = {}  # by rank and node: the row

    def __call__(self, what: str, rank: int, node) -> None:
        if node.type == COMP:
            if "comm_tag" in attributes(node):
                self.move_within(attributes(node)["comm_tag"])
            elif node.data_deps and not node.duration_micros:
                self.add(self.received[rank, node.data_deps[0]])
            elif node.data_deps:  # a delay passes on what it waited for
                self.received[rank, node.id] = self.received[rank, node.data_deps[0]]
            return
        row = attributes(node)["comm_tag"]
        if node.type == SEND:
            assert what == "send"
            assert rank == self.rows.src[row]
            self.moving[row] = self.held[rank, self.rows.reads[row]].copy()
        elif node.type == RECV:
            assert rank == self.rows.dst[row]
            self.received[rank, node.id] = row
            if not self.rows.reduce[row]:
                self.held[rank, self.rows.writes[row]] = self.moving.pop(row)

    def move_within(self, row: int) -> None:
        npu = int(self.rows.dst[row])
        moved, spot = self.held[npu, self.rows.reads[row]], (npu, int(self.rows.writes[row]))
        before = self.held.get(spot, Counter()) if self.rows.reduce[row] else Counter()
        self.held[spot] = before + moved

    def add(self, row: int) -> None:
        spot = (int(self.rows.dst[row]), int(self.rows.writes[row]))
        self.held[spot] = self.held.get(spot, Counter()) + self.moving.pop(row)

    def check(self) -> None:
        for chunk in range(len(self.chunks)):
            owners = self.chunks.members(self.chunks.pre[chunk]).tolist()
            whole = Counter(owners if self.chunks.reduce[chunk] else [min(owners)])
            for npu in self.chunks.members(self.chunks.post[chunk]).tolist():
                for part in self.parts:
                    place = chunk * len(self.parts) + part
                    assert self.held[npu, place] == whole, (chunk, npu, part)
        assert not self.moving


def run_with_data(algorithm: Algorithm, folder: Path, *, topology=None, **how) -> int:
    """The time of a run of the exported bundle, whose results are checked."""
    job = chosen(algorithm, topology)
    second = how.get("which", "") == "npus-"
    data = Data(algorithm, job.npus if second else job.main)
    run = run_bundle(folder, listener=data, **how)
    data.check()
    return run.time
