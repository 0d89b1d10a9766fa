"""Small algorithms made by hand, each known to be right: the judge must say so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from weft.algorithm import Algorithm, Buffer, Routes, Timing, Transfers, place
from weft.collective import Collective
from weft.cost import CostModel
from weft.topology.model import Topology

# At 1 GB/s a byte takes a nanosecond.
BANDWIDTH, LATENCY = 10**9, 500
SHARE = 1600
HOP = SHARE * 1000 + LATENCY
Row = tuple[int, int, int, bool, int, int]  # chunk, src, dst, reduce, route, start


def table(rows: Sequence[Row], durations: int | Sequence[int]) -> Transfers:
    """Timed transfers from rows; `durations` in ps."""
    chunk, src, dst, reduce, route, start = (np.array(c) for c in zip(*rows, strict=True))
    return Transfers(
        chunk.astype(np.int32),
        src.astype(np.int32),
        dst.astype(np.int32),
        reduce.astype(np.bool_),
        route.astype(np.int32),
        start.astype(np.int64),
        (start + np.array(durations)).astype(np.int64),
    )


def ring(n: int) -> Topology:
    """Both ways round: link i leads from i to i+1, link n+i back."""
    nodes = np.arange(n)
    right = (nodes + 1) % n
    return Topology.from_links(
        f"ring:{n}", n, np.r_[nodes, right], np.r_[right, nodes], BANDWIDTH, LATENCY
    )


def line(n: int) -> Topology:
    return Topology.from_links(
        f"line:{n}", n, np.arange(n - 1), np.arange(1, n), BANDWIDTH, LATENCY
    )


def star(n: int, up: int = BANDWIDTH, down: int = BANDWIDTH) -> Topology:
    """One switch: link i leads from NPU i to it, link n+i from it to NPU i."""
    nodes, hub = np.arange(n), np.full(n, n)
    rates = np.r_[np.full(n, up), np.full(n, down)]
    return Topology.from_links(
        f"star:{n}", n, np.r_[nodes, hub], np.r_[hub, nodes], rates, LATENCY, switches=1
    )


def star_routes(n: int) -> Routes:
    """Route src·n + dst; the ones from an NPU to itself are empty."""
    pairs = [[] if s == d else [s, n + d] for s in range(n) for d in range(n)]
    offsets = np.cumsum([0, *map(len, pairs)], dtype=np.int64)
    return Routes(offsets, np.array([x for p in pairs for x in p], dtype=np.int32))


def on_links(
    topology: Topology, collective: Collective, transfers: Transfers, cost: CostModel | None = None
) -> Algorithm:
    routes = Routes.of_links(topology.links)
    return Algorithm((collective,), transfers, Timing(topology, cost or CostModel(), routes))


def ring_steps(n: int, first: int, steps: int, shift: int, *, reduce: bool) -> list[Row]:
    """In step s NPU i sends chunk i - s + shift to its right neighbour."""
    return [
        ((i - s + shift) % n, i, (i + 1) % n, reduce, i, (first + s) * HOP)
        for s in range(steps)
        for i in range(n)
    ]


def ring_all_gather(n: int = 4) -> Algorithm:
    rows = ring_steps(n, 0, n - 1, 0, reduce=False)
    return on_links(ring(n), Collective.of("all-gather", range(n), n * SHARE), table(rows, HOP))


def ring_reduce_scatter(n: int = 4) -> Algorithm:
    rows = ring_steps(n, 0, n - 1, -1, reduce=True)
    collective = Collective.of("reduce-scatter", range(n), n * SHARE)
    return on_links(ring(n), collective, table(rows, HOP))


def ring_all_reduce(n: int = 4) -> Algorithm:
    rows = ring_steps(n, 0, n - 1, -1, reduce=True)
    rows += ring_steps(n, n - 1, n - 1, 0, reduce=False)
    return on_links(ring(n), Collective.of("all-reduce", range(n), n * SHARE), table(rows, HOP))


def line_broadcast(n: int = 4, chunks: int = 3) -> Algorithm:
    """Chunks in a pipeline: a link is free again before the latency is over."""
    push = HOP - LATENCY
    rows = [
        (c, i, i + 1, False, i, i * HOP + c * push) for c in range(chunks) for i in range(n - 1)
    ]
    collective = Collective.of("broadcast", range(n), chunks * SHARE, chunks)
    return on_links(line(n), collective, table(rows, HOP))


def line_reduce(n: int = 4) -> Algorithm:
    rows = [(0, i, i + 1, True, i, i * HOP) for i in range(n - 1)]
    collective = Collective.of("reduce", range(n), SHARE, root=n - 1)
    return on_links(line(n), collective, table(rows, HOP))


def relayed_reduce() -> Algorithm:
    """NPU 1 is not in the group: its sum begins empty."""
    rows = [(0, 0, 1, True, 0, 0), (0, 1, 2, True, 1, HOP)]
    return on_links(line(3), Collective.of("reduce", [0, 2], SHARE, root=2), table(rows, HOP))


def star_all_gather(blocking: bool, store_and_forward: bool, slow_up: bool) -> Algorithm:
    """Everyone sends to its k-th neighbour in step k, over a switch with two speeds of link."""
    n, slow, fast = 4, BANDWIDTH, 2 * BANDWIDTH
    up, down = (slow, fast) if slow_up else (fast, slow)
    pushes = [SHARE * 10**12 // up, SHARE * 10**12 // down]
    taken = sum(pushes) if store_and_forward else max(pushes)
    duration = taken + 2 * LATENCY
    step = max(pushes) + (LATENCY if blocking else 0)
    rows = [
        (i, i, (i + k) % n, False, i * n + (i + k) % n, (k - 1) * step)
        for k in range(1, n)
        for i in range(n)
    ]
    cost = CostModel(
        "blocking" if blocking else "pipelined",
        "store-and-forward" if store_and_forward else "cut-through",
    )
    collective = Collective.of("all-gather", range(n), n * SHARE)
    return Algorithm(
        (collective,), table(rows, duration), Timing(star(n, up, down), cost, star_routes(n))
    )


def with_buffer(algorithm: Algorithm, size: int) -> Algorithm:
    """The same on a network whose switches store `size` bytes; it need not be right any more."""
    network = algorithm.topology
    limits = dict.fromkeys(range(network.npus, network.nodes), size)
    return algorithm.on(network.with_switches(buffers=limits))


def star_multicast(copies: bool = True, chunks: int = 2, places: bool = False) -> Algorithm:
    """NPU 0 sends each chunk once, and the switch to all three others."""
    n, push = 4, SHARE * 1000
    rows = [(c, 0, d, False, d, c * push) for c in range(chunks) for d in range(1, n)]
    collective = Collective.of("broadcast", range(n), chunks * SHARE, chunks, root=0)
    network = star(n).with_switches(copying=[n] if copies else [])
    transfers = table(rows, push + 2 * LATENCY)
    if places:
        given = np.array([place(Buffer.INPUT, row[0]) for row in rows], dtype=np.int32)
        transfers = replace(transfers, src_place=given, dst_place=transfers.chunk.copy())
    return Algorithm((collective,), transfers, Timing(network, CostModel(), star_routes(n)))


def tree_multicast(copying: Sequence[int] = (4, 5, 6)) -> Algorithm:
    """Two leaves (4, 5) with two NPUs each and a spine (6): one transmission for all of them."""
    ends = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)]
    network = Topology.from_links(
        "two leaves",
        4,
        [low for low, _ in ends] + [high for _, high in ends],
        [high for _, high in ends] + [low for low, _ in ends],
        BANDWIDTH,
        LATENCY,
        switches=3,
    ).with_switches(copying=copying)
    paths = [[0, 7], [0, 4, 11, 8], [0, 4, 11, 9]]
    routes = Routes(
        np.cumsum([0, *map(len, paths)], dtype=np.int64),
        np.array([link for path in paths for link in path], dtype=np.int32),
    )
    rows = [(0, 0, d, False, d - 1, 0) for d in (1, 2, 3)]
    transfers = table(rows, [SHARE * 1000 + len(path) * LATENCY for path in paths])
    collective = Collective.of("broadcast", range(4), SHARE, root=0)
    return Algorithm((collective,), transfers, Timing(network, CostModel(), routes))


def backwards(algorithm: Algorithm, kind: str = "reduce") -> Algorithm:
    """A Broadcast run back in time over links turned round: a Reduce, with the same numbers."""
    rows, routes = algorithm.transfers, algorithm.routes
    last = algorithm.time
    mirrored = [routes.links[begin:end][::-1] for begin, end in pairwise(routes.offsets.tolist())]
    links = np.concatenate([np.zeros(0, dtype=np.int32), *mirrored]).astype(np.int32)
    transfers = replace(
        rows,
        src=rows.dst,
        dst=rows.src,
        reduce=np.ones_like(rows.reduce),
        start=last - rows.end,
        end=last - rows.start,
        src_place=rows.dst_place,
        dst_place=rows.src_place,
    )
    timing = Timing(algorithm.topology.reversed(), algorithm.cost, Routes(routes.offsets, links))
    demands = tuple(replace(demand, kind=kind) for demand in algorithm.demands)
    return replace(algorithm, demands=demands, rows=transfers, timing=timing)


def crossing_all_reduce() -> Algorithm:
    """Two partial sums cross, one by way of NPU 2: no tree, and no places needed."""
    duration = SHARE * 1000 + 2 * LATENCY
    hops = [(0, 2, False), (1, 0, True), (2, 1, True)]
    rows = [(0, s, d, r, s * 3 + d, k * duration) for k, (s, d, r) in enumerate(hops)]
    collective = Collective("all-reduce", (0, 1), SHARE, alignment=SHARE)
    return Algorithm(
        (collective,), table(rows, duration), Timing(star(3), CostModel(), star_routes(3))
    )


def line_scatter(n: int = 4) -> Algorithm:
    """The farthest first, one after the other."""
    rows = [
        (c, i, i + 1, False, i, (n - 1 - c + i) * HOP)
        for c in range(n - 1, 0, -1)
        for i in range(c)
    ]
    return on_links(line(n), Collective.of("scatter", range(n), n * SHARE), table(rows, HOP))


def line_gather(n: int = 4) -> Algorithm:
    """To the end of the line; the nearest first."""
    rows = [
        (c, i, i + 1, False, i, (n - 2 - c + i - c) * HOP)
        for c in range(n - 2, -1, -1)
        for i in range(c, n - 1)
    ]
    collective = Collective.of("gather", range(n), n * SHARE, root=n - 1)
    return on_links(line(n), collective, table(rows, HOP))


def placed(
    rows: Sequence[tuple[int, int, int, bool, int, int]], collective: Collective
) -> Algorithm:
    """An untimed algorithm from (chunk, src, dst, reduce, src place, dst place)."""
    chunk, src, dst, reduce, src_place, dst_place = (
        np.array(c, dtype=np.int32) for c in zip(*rows, strict=True)
    )
    transfers = Transfers(
        chunk,
        src,
        dst,
        reduce.astype(np.bool_),
        src_place=src_place,
        dst_place=dst_place,
    )
    return Algorithm((collective,), transfers)


def scratch_all_reduce() -> Algorithm:
    """Two NPUs swap inputs through scratch and add them up in the output."""
    given, result, slot = place(Buffer.INPUT, 0), place(Buffer.OUTPUT, 0), place(Buffer.SCRATCH, 7)
    rows = [
        (0, 0, 1, False, given, slot),
        (0, 1, 0, False, given, slot),
        (0, 0, 0, False, given, result),
        (0, 1, 1, False, given, result),
        (0, 0, 0, True, slot, result),
        (0, 1, 1, True, slot, result),
    ]
    return placed(rows, Collective("all-reduce", (0, 1), SHARE, alignment=SHARE))


def doubling_all_reduce(n: int = 4) -> Algorithm:
    """Recursive doubling: partners swap partial sums through scratch, then add them up."""
    slots = [place(Buffer.SCRATCH, bit) for bit in range(n.bit_length() - 1)]
    rows = []
    for bit, slot in enumerate(slots):
        rows += [(0, i, i ^ (1 << bit), False, 0, slot) for i in range(n)]
        rows += [(0, i, i, True, slot, 0) for i in range(n)]
    return placed(rows, Collective("all-reduce", tuple(range(n)), SHARE, alignment=SHARE))


def over_star(algorithm: Algorithm) -> Algorithm:
    """The same with times, over a switch: local rows take none, remote ones follow in waves."""
    t = algorithm.transfers
    n = len(algorithm.demands[0].group)
    duration = SHARE * 1000 + 2 * LATENCY
    remote = t.src != t.dst
    wave_begins = remote & ~np.r_[False, remote[:-1]]
    start = ((np.cumsum(wave_begins) - remote) * duration).astype(np.int64)
    transfers = replace(
        t,
        route=(t.src * n + t.dst).astype(np.int32),
        start=start,
        end=np.where(remote, start + duration, start).astype(np.int64),
    )
    return replace(algorithm, rows=transfers, timing=Timing(star(n), CostModel(), star_routes(n)))


def untimed(algorithm: Algorithm) -> Algorithm:
    """The logical layer alone, with a dependency of each row on the first."""
    t = algorithm.transfers
    rows = len(t)
    offsets = np.r_[0, np.arange(rows)].astype(np.int64)
    deps = np.zeros(rows - 1, dtype=np.int64)
    transfers = Transfers(t.chunk, t.src, t.dst, t.reduce, dep_offsets=offsets, deps=deps)
    return Algorithm(algorithm.demands, transfers)


HANDMADE: dict[str, Callable[[], Algorithm]] = {
    "ring all-gather": ring_all_gather,
    "ring reduce-scatter": ring_reduce_scatter,
    "ring all-reduce": ring_all_reduce,
    "line broadcast": line_broadcast,
    "line reduce": line_reduce,
    "relayed reduce": relayed_reduce,
    "line scatter": line_scatter,
    "line gather": line_gather,
    "crossing all-reduce": crossing_all_reduce,
    "multicast": star_multicast,
    "multicast with places": lambda: star_multicast(places=True),
    "multicast through a tree": tree_multicast,
    "doubling all-reduce": doubling_all_reduce,
    "scratch all-reduce": scratch_all_reduce,
    "timed scratch all-reduce": lambda: over_star(scratch_all_reduce()),
    "timed doubling all-reduce": lambda: over_star(doubling_all_reduce()),
    "untimed all-gather": lambda: untimed(ring_all_gather()),
    "untimed all-reduce": lambda: untimed(ring_all_reduce()),
    "untimed crossing": lambda: untimed(crossing_all_reduce()),
}
