"""The judge and its slow double agree, on broken algorithms and on random ones."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from weft.algorithm import Algorithm, Buffer, Routes, Timing, Transfers, place
from weft.collective import Collective
from weft.cost import CostModel
from weft.judge import verify
from weft.topology.model import Topology

from . import handmade
from .handmade import BANDWIDTH, HOP, LATENCY, SHARE
from .mutate import change, drop, swap
from .reference import is_right

ALGORITHMS = [build() for build in handmade.HANDMADE.values()]
ALGORITHMS += [
    handmade.with_buffer(handmade.star_all_gather(b, f, s), size)
    for b, f, s in ((0, 0, 0), (1, 0, 1), (0, 1, 0))
    for size in (0, SHARE // 2, SHARE)
]
ALGORITHMS += [handmade.star_all_gather(b, f, s) for b, f, s in ((0, 0, 0), (1, 0, 1), (0, 1, 1))]


@st.composite
def mutants(draw: st.DrawFn) -> Algorithm:
    algorithm = draw(st.sampled_from(ALGORITHMS))
    for _ in range(draw(st.integers(1, 2))):
        algorithm = _mutated(draw, algorithm)
    return algorithm


def _mutated(draw: st.DrawFn, algorithm: Algorithm) -> Algorithm:
    t = algorithm.transfers
    rows = st.integers(0, len(t) - 1)
    row = draw(rows)
    ways = ["chunk", "reduce", "swap"] + (["drop"] if len(t) > 1 else [])
    ways += ["shift", "end", "turn", "route"] if t.timed else ["src", "dst"]
    ways += ["src_place", "dst_place"] if t.src_place is not None else []
    way = draw(st.sampled_from(ways))
    if way == "drop":
        return drop(algorithm, row)
    if way == "swap":
        return swap(algorithm, row, draw(rows))
    if way == "turn":
        return _turned(draw, algorithm, row)
    steps = st.sampled_from([-HOP, -LATENCY, -1, 1, LATENCY, HOP])
    places = [place(b, 0) for b in Buffer] + [place(Buffer.SCRATCH, 7)]
    values = {
        "chunk": st.integers(0, len(algorithm.chunks) - 1),
        "reduce": st.booleans(),
        "shift": steps,
        "end": steps.map(lambda by: int(t.end[row]) + by),
        "route": st.integers(0, len(algorithm.routes or Routes.of_links(1)) - 1),
        "src": st.integers(0, max(algorithm.demands[0].group)),
        "dst": st.integers(0, max(algorithm.demands[0].group)),
        "src_place": st.sampled_from(places),
        "dst_place": st.sampled_from(places),
    }
    return change(algorithm, row, **{way: draw(values[way])})


def _turned(draw: st.DrawFn, algorithm: Algorithm, row: int) -> Algorithm:
    """The row over another route, with the ends of that route."""
    routes, topology = algorithm.routes, algorithm.topology
    real = np.flatnonzero(np.diff(routes.offsets))
    route = int(draw(st.sampled_from(real.tolist())))
    links = routes.links[routes.offsets[route] : routes.offsets[route + 1]]
    src, dst = topology.src[links[0]], topology.dst[links[-1]]
    return change(algorithm, row, route=route, src=src, dst=dst)


@examples(600)
@given(mutants())
def test_mutants(algorithm: Algorithm) -> None:
    verdict = verify(algorithm)
    assert bool(verdict) == is_right(algorithm), verdict.violation


KINDS = st.sampled_from(["all-reduce", "reduce", "broadcast", "all-gather"])
HOPS = st.tuples(st.sampled_from([(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)]), st.booleans())


@examples(1500)
@given(KINDS, st.sampled_from([2, 3]), st.lists(HOPS, min_size=1, max_size=6), st.data())
def test_random_programs(
    kind: str, ranks: int, hops: list[tuple[tuple[int, int], bool]], data: st.DataObject
) -> None:
    """A few rows among three NPUs, each over a link of its own: any order in time is possible."""
    collective = Collective.of(kind, range(ranks), SHARE, alignment=SHARE)
    count = len(hops)
    ends = np.array([pair for pair, _ in hops], dtype=np.int32)
    sums = collective.chunks.reduce.all()
    transfers = Transfers(
        np.zeros(count, dtype=np.int32),
        ends[:, 0].copy(),
        ends[:, 1].copy(),
        np.array([reduce and bool(sums) for _, reduce in hops]),
    )
    untimed = Algorithm((collective,), transfers)
    assert bool(verify(untimed)) == is_right(untimed), verify(untimed).violation
    delays = data.draw(st.lists(st.integers(-1, 2), min_size=count, max_size=count))
    start = np.maximum(np.cumsum(delays), 0).astype(np.int64) * HOP
    timed = Algorithm(
        (collective,),
        Transfers(
            *(getattr(transfers, name) for name in ("chunk", "src", "dst", "reduce")),
            np.arange(count, dtype=np.int32),
            start,
            start + HOP,
        ),
        Timing(
            Topology.from_links("own links", 3, ends[:, 0], ends[:, 1], BANDWIDTH, LATENCY),
            CostModel(),
            Routes.of_links(count),
        ),
    )
    assert bool(verify(timed)) == is_right(timed), verify(timed).violation
