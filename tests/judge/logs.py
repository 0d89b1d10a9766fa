"""Logs of rounds made by hand: a greedy producer, a slow encoder, and its inverse."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, RoundLog, Routes, Timing, Transfers
from weft.algorithm.rounds import NARROW_CHUNKS
from weft.collective import Collective
from weft.cost import CostModel
from weft.topology.model import Topology

Entry = tuple[int, int, int]  # round, link, chunk


def duration(topology: Topology, link: int, size: int) -> int:
    return push(topology, link, size) + int(topology.latency[link])


def push(topology: Topology, link: int, size: int) -> int:
    return int(_core.serialization(size, topology.bandwidth[link : link + 1])[0])


def whole_slot(topology: Topology, demand: Collective, cost: CostModel) -> int:
    """So long that every link is free again after it."""
    time = duration if cost.latency_model == "blocking" else push
    times = (time(topology, link, demand.largest_chunk) for link in range(topology.links))
    return max(times, default=1)


def owners(demand: Collective) -> list[int]:
    """Where each chunk starts as a copy: in an All-Reduce the shards' ranks."""
    gather = Collective.of(
        "all-gather", demand.group, demand.size, demand.chunks_per_share, None, demand.alignment
    )
    return [int(gather.chunks.members(number)[0]) for number in gather.chunks.pre.tolist()]


def gather(topology: Topology, demand: Collective, slot: int, seed: int = 0) -> list[Entry]:
    """Every link takes, each round, a chunk that its end lacks; each NPU gets each chunk once."""
    rng, largest = random.Random(seed), demand.largest_chunk
    took = [duration(topology, link, largest) for link in range(topology.links)]
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), took, strict=True))
    ready: list[dict[int, int]] = [{} for _ in range(topology.npus)]  # by NPU, then chunk
    for chunk, npu in enumerate(owners(demand)):
        ready[npu][chunk] = 0
    entries, left, r = [], len(demand.chunks) * (demand.ranks - 1), 0
    while left:
        for link, (src, dst, time) in enumerate(ends):
            if new := [c for c, t in ready[src].items() if t <= r * slot and c not in ready[dst]]:
                chunk = rng.choice(new)
                ready[dst][chunk] = r * slot + time
                entries.append((r, link, chunk))
                left -= 1
        r += 1
    return entries


def encode(entries: Sequence[Entry], links: int, chunks: int) -> RoundLog:
    """The bytes of these entries, at most one per round and link."""
    dtype = np.dtype("<u2" if chunks <= NARROW_CHUNKS else "<u4")
    log, offsets = b"", [0]
    for r in range(1 + max((r for r, _, _ in entries), default=-1)):
        here = sorted((link, chunk) for round_, link, chunk in entries if round_ == r)
        bitmap = sum(1 << link for link, _ in here)
        log += bitmap.to_bytes((links + 63) // 64 * 8, "little")
        numbers = np.array([chunk for _, chunk in here], dtype=dtype).tobytes()
        log += numbers + bytes(-len(numbers) % 8)
        offsets.append(len(log))
    return RoundLog(
        1, len(entries), np.frombuffer(log, dtype=np.uint8), np.array(offsets, dtype=np.int64)
    )


def logged(
    topology: Topology, demand: Collective, cost: CostModel, slot: int, entries: Sequence[Entry]
) -> Algorithm:
    phases = 2 if demand.kind == "all-reduce" else 1
    rows = replace(encode(entries, topology.links, len(demand.chunks)), slot=slot, phases=phases)
    return Algorithm((demand,), rows, Timing(topology, cost))


def reverse(topology: Topology, link: int) -> int:
    """The link back; of several parallel ones the one in the same place."""
    columns = (topology.src, topology.dst, topology.bandwidth, topology.latency)
    ends = list(zip(*(column.tolist() for column in columns), strict=True))
    src, dst, rate, delay = ends[link]
    place = [i for i, e in enumerate(ends) if e == ends[link]].index(link)
    return [i for i, e in enumerate(ends) if e == (dst, src, rate, delay)][place]


def expanded(algorithm: Algorithm, entries: Sequence[Entry]) -> Algorithm:
    """The same as a table, by the words of `RoundLog`."""
    topology, demand, rows = algorithm.topology, algorithm.demands[0], algorithm.rows
    assert topology is not None
    assert isinstance(rows, RoundLog)
    sizes, slot = demand.chunks.bytes.tolist(), rows.slot
    longest = [duration(topology, link, demand.largest_chunk) for link in range(topology.links)]
    end = max((r * slot + longest[link] for r, link, _ in entries), default=0)
    made = []
    if demand.kind != "all-gather":
        reverse_links = {link: reverse(topology, link) for link in {link for _, link, _ in entries}}
        for r, link, c in entries:
            back, start = reverse_links[link], end - r * slot - longest[link]
            made.append((c, back, True, start, start + duration(topology, back, sizes[c])))
    if demand.kind != "reduce-scatter":
        begin = end if made else 0
        for r, link, c in entries:
            start = begin + r * slot
            made.append((c, link, False, start, start + duration(topology, link, sizes[c])))
    made.sort(key=lambda row: (row[3], row[4]))
    columns: list[NDArray[np.generic]] = [
        np.array([row[i] for row in made], dtype=dtype)
        for i, dtype in enumerate((np.int32, np.int32, np.bool_, np.int64, np.int64))
    ]
    chunk, link, reduce, start, ends = columns
    table = Transfers(chunk, topology.src[link], topology.dst[link], reduce, link, start, ends)
    return replace(
        algorithm,
        rows=table,
        timing=replace(algorithm.timing, routes=Routes.of_links(topology.links)),
    )
