"""Algorithms to write and read: made by hand or at random, well-formed but not always useful."""

from __future__ import annotations

from itertools import chain

import numpy as np

from weft.algorithm import Algorithm, Buffer, Routes, Timing, Transfers, place
from weft.algorithm.log_file import LogFile
from weft.collective import Collective, Move, all_to_allv, custom
from weft.cost import CostModel
from weft.topology.model import Topology


def table(rows, **more) -> Transfers:
    """Columns from rows of (chunk, src, dst, reduce)."""
    chunk, src, dst, reduce = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Transfers(
        np.array(chunk, np.int32),
        np.array(src, np.int32),
        np.array(dst, np.int32),
        np.array(reduce, np.bool_),
        **more,
    )


def ring_rows(npus: int, *, reduce: bool):
    """Rows of a ring All-Gather, or of a ring All-Reduce."""
    rows = []
    if reduce:
        rows += [
            ((s - t) % npus, s, (s + 1) % npus, True) for t in range(npus - 1) for s in range(npus)
        ]
    first = 1 if reduce else 0
    rows += [
        ((s - t + first) % npus, s, (s + 1) % npus, False)
        for t in range(npus - 1)
        for s in range(npus)
    ]
    return rows


def ring(npus: int, *, reduce: bool = False, timed: bool = True) -> Algorithm:
    """A ring All-Gather or All-Reduce, timed on its ring."""
    demand = Collective.of("all-reduce" if reduce else "all-gather", range(npus), npus * 1000 + 3)
    rows = table(ring_rows(npus, reduce=reduce))
    if not timed:
        return Algorithm((demand,), rows)
    topology = Topology.from_links(
        f"ring:{npus}", npus, np.arange(npus), (np.arange(npus) + 1) % npus, 50 * 10**9, 500_000
    )
    step = np.arange(len(rows), dtype=np.int64) // npus
    times = {"route": rows.src, "start": step * 520_000, "end": step * 520_000 + 519_999}
    return Algorithm(
        (demand,),
        Transfers(**rows.columns(), **times),
        Timing(topology, CostModel(), Routes.of_links(npus)),
        {"method": "ring", "seed": 7, "ratio": 0.5, "exact": True},
    )


def star(npus: int) -> Algorithm:
    """A Broadcast through a switch: routes of two links, two speeds, a buffer, one NPU gone."""
    hosts = np.arange(npus)
    topology = Topology.from_links(
        "star",
        npus,
        np.concatenate([hosts, np.full(npus, npus)]),
        np.concatenate([np.full(npus, npus), hosts]),
        np.where(np.arange(2 * npus) % 3 == 0, 10**9, 25 * 10**9),
        np.where(np.arange(2 * npus) % 2 == 0, 0, 700_000),
        switches=1,
        dimensions=(1, npus),
    ).without(npus=[npus - 1])
    able = {"copying": [npus], "adding": [npus]}
    topology = topology.with_switches(buffers={npus: 5000}, **able)
    group = topology.members[::-1]
    demand = Collective.of("broadcast", group, 100, 2, root=int(group[0]), alignment=4)
    root = int(group[0])
    hops = [(c, root, int(to), False) for to in group[1:] for c in range(2)]
    up = {
        int(s): i
        for i, (s, d) in enumerate(zip(topology.src, topology.dst, strict=True))
        if d == npus
    }
    down = {
        int(d): i
        for i, (s, d) in enumerate(zip(topology.src, topology.dst, strict=True))
        if s == npus
    }
    routes = Routes(
        np.arange(len(group), dtype=np.int64) * 2,
        np.array([link for to in group[1:] for link in (up[root], down[int(to)])], np.int32),
    )
    count = len(hops)
    return Algorithm(
        (demand,),
        table(
            hops,
            route=(np.arange(count) // 2).astype(np.int32),
            start=np.arange(count, dtype=np.int64) * 10**12,
            end=np.arange(count, dtype=np.int64) * 10**12 + 3,
        ),
        Timing(topology, CostModel("blocking", "store-and-forward"), routes),
    )


def with_places() -> Algorithm:
    """Two demands, scratch and output places, local copies and sums, explicit dependencies."""
    demands = (
        Collective.of("all-reduce", (3, 1), 64),
        Collective.of("gather", (0, 1, 2), 90, root=1, alignment=1),
    )
    scratch = [place(Buffer.SCRATCH, i) for i in range(3)]
    rows = [
        (0, 1, 3, False),  # into scratch
        (0, 3, 3, True),  # scratch added to home
        (0, 3, 1, False),
        (1, 3, 1, True),
        (1, 1, 1, False),  # copied to output
        (1, 1, 3, False),
        (2, 0, 1, False),
        (4, 2, 1, False),
        (4, 1, 1, True),  # a place added to itself
    ]
    reads = np.array([r[0] for r in rows], np.int32)
    writes = reads.copy()
    writes[0] = reads[1] = scratch[0]
    writes[4] = place(Buffer.OUTPUT, 1)
    deps = [[], [0], [], [2], [], [4, 3], [], [6], [7, 5]]
    return Algorithm(
        demands,
        table(
            rows,
            src_place=reads,
            dst_place=writes,
            dep_offsets=np.cumsum([0, *map(len, deps)]).astype(np.int64),
            deps=np.array(list(chain(*deps)), np.int64),
        ),
        provenance={"origin": "by hand, größer"},
    )


def told() -> Algorithm:
    """Demands whose name does not say what moves, among named ones; one without relays."""
    demands = (
        Collective.of("all-to-all", (2, 0), 50),
        all_to_allv((3, 1, 2), [[0, 5, 0], [70, 1, 2], [9, 9, 9]], chunks_per_share=2),
        Collective.of("all-gather", (0, 1), 10, relay=False),
        custom((4, 2, 0), [Move(64, (0, 1), (2,), reduce=True), Move(7, (0, 2), (1, 2))]),
    )
    return Algorithm(demands, table([(0, 2, 0, False), (1, 2, 0, False)]))


def random_algorithm(seed: int) -> Algorithm:
    """Rows that mean nothing but are in range: what a format must carry all the same."""
    rng = np.random.default_rng(seed)
    npus, count = int(rng.integers(1, 7)), int(rng.integers(0, 40))
    demands = tuple(
        Collective.of(
            kind, rng.permutation(npus), int(rng.integers(1, 5000)), int(rng.integers(1, 4))
        )
        for kind in rng.choice(["all-gather", "all-reduce", "scatter"], rng.integers(1, 3))
    )
    chunks = sum(len(demand.chunks) for demand in demands)

    def column(end, dtype=np.int32):
        return rng.integers(0, end, count).astype(dtype)

    more = {}
    timing = None
    if rng.random() < 0.6:
        links = int(rng.integers(1, 9)) if npus > 1 else 0
        src = rng.integers(0, npus, links)
        dst = (src + 1 + rng.integers(0, max(npus - 1, 1), links)) % npus
        topology = Topology.from_links("any", npus, src, dst, rng.integers(1, 9, links), 5)
        timing = Timing(topology, CostModel(), Routes.of_links(links))
        if links or not count:
            more = {
                "route": column(max(links, 1)),
                "start": column(1 << 62, np.int64),
                "end": rng.integers(-(1 << 62), 1 << 62, count),
            }
    if rng.random() < 0.4:
        more["src_place"] = column(1 << 31)
    if rng.random() < 0.4:
        more["dst_place"] = column(chunks)
    if rng.random() < 0.4:
        counts = np.minimum(rng.integers(0, 4, count), np.arange(count))
        more["dep_offsets"] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        owner = np.repeat(np.arange(count), counts)
        more["deps"] = rng.integers(0, np.maximum(owner, 1)).astype(np.int64)
    rows = Transfers(column(chunks), column(npus), column(npus), rng.random(count) < 0.4, **more)
    return Algorithm(demands, rows, timing, {"seed": seed})


def assert_same(a: Algorithm, b: Algorithm) -> None:
    """Equal in everything."""
    assert a.demands == b.demands
    assert a.cost == b.cost
    assert dict(a.provenance) == dict(b.provenance)
    assert_same_columns(a.transfers.columns(), b.transfers.columns())
    for name in ("topology", "routes"):
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None)
        if left is not None:
            assert_same_columns(left.__getstate__(), right.__getstate__())  # without caches


def assert_same_columns(left, right) -> None:
    cached = {"members", "core", "shifts", "symmetry"}
    assert set(left) - cached == set(right) - cached
    for name in set(left) - cached:
        if isinstance(left[name], np.ndarray | LogFile):
            assert left[name].dtype == right[name].dtype, name
            assert np.array_equal(left[name], right[name]), name
        elif isinstance(left[name], Topology):
            assert_same_columns(vars(left[name]), vars(right[name]))
        else:
            assert left[name] == right[name], name
