"""Programs of ranks, run by a machine that is as slow and as late as it may be."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.runtime.machine import check
from tests.strategies import group_collectives, networks
from weft.algorithm import Algorithm
from weft.runtime import Programs

COUNTS = st.one_of(st.integers(0, 9), st.integers(10, 300))


@examples(60)
@given(st.data())
def test_all_get_what_they_must_have(data: st.DataObject) -> None:
    network = data.draw(networks())
    demands = data.draw(st.lists(group_collectives(network), min_size=1, max_size=2))
    algorithm = weft.synthesize(network, demands, chunks=1).algorithm
    if data.draw(st.booleans()):
        rows = algorithm.transfers
        bare = replace(rows, route=None, start=None, end=None)
        algorithm = Algorithm(algorithm.demands, bare)
    programs = Programs(algorithm, reproducible=data.draw(st.booleans()))
    counts = data.draw(st.lists(COUNTS, min_size=len(demands), max_size=len(demands)))
    own = any(demand.pattern.own_buffers or demand.parts for demand in demands)
    in_place = not own and data.draw(st.booleans())
    check(
        programs,
        counts,
        data.draw(st.integers(0, 1 << 30)),
        room=data.draw(st.integers(0, 3)),
        in_place=in_place,
    )
