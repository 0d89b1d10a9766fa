"""Tables that make no sense are told so, not read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weft.algorithm import Algorithm, Buffer, Routes, place
from weft.collective import Collective
from weft.errors import InputError
from weft.judge import verify

from . import handmade
from .mutate import change, with_columns

GATHER = handmade.ring_all_gather(4)
COLUMNS = GATHER.transfers.columns()


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "chunk"])
def test_short_column(name: str) -> None:
    verdict = verify(with_columns(GATHER, **{name: COLUMNS[name][:-1]}))
    assert verdict.kind == "structure"
    assert verdict.violation == f"column '{name}' has 11 values, but 12 are expected"


@pytest.mark.parametrize("name", COLUMNS)
def test_column_of_another_type(name: str) -> None:
    verdict = verify(with_columns(GATHER, **{name: COLUMNS[name].astype(np.float64)}))
    assert verdict.kind == "structure"
    assert f"'{name}' is float64" in verdict.violation


@pytest.mark.parametrize("name", ["route", "end"])
def test_half_timed(name: str) -> None:
    assert verify(with_columns(GATHER, **{name: None})).kind == "structure"


def test_strided_columns_are_fine() -> None:
    assert verify(with_columns(GATHER, start=np.repeat(COLUMNS["start"], 2)[::2]))


@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        ({"chunk": 4}, "structure", "row 5 moves chunk 4, but chunks are 0 to 3"),
        ({"chunk": -1}, "structure", "row 5 moves chunk -1, but chunks are 0 to 3"),
        ({"src": 4}, "structure", "row 5 names NPU 4, but NPUs are 0 to 3"),
        ({"dst": -2}, "structure", "row 5 names NPU -2, but NPUs are 0 to 3"),
        ({"route": 8}, "route", "row 5 takes route 8, but routes are 0 to 7"),
        ({"route": -1}, "route", "row 5 takes route -1, but routes are 0 to 7"),
    ],
)
def test_numbers_out_of_range(values: dict[str, int], kind: str, text: str) -> None:
    verdict = verify(change(GATHER, 5, **values))
    assert (verdict.kind, verdict.violation, verdict.row) == (kind, text, 5)


@pytest.mark.parametrize(
    "number", [-1, place(Buffer.HOME, 1), place(Buffer.INPUT, 1), place(Buffer.OUTPUT, 9)]
)
def test_places_out_of_range(number: int) -> None:
    verdict = verify(change(handmade.scratch_all_reduce(), 3, dst_place=number))
    assert (verdict.kind, verdict.row) == ("structure", 3)


@pytest.mark.parametrize("offsets", [[1, 1], [0, 2, 1], [0, 1, 9], [0, -1, 1], [0, 4]])
def test_broken_table_of_routes(offsets: list[int]) -> None:
    links = np.array([0, 1, 2], dtype=np.int32)
    routes = Routes(np.array(offsets, dtype=np.int64), links)
    assert verify(replace(GATHER, timing=replace(GATHER.timing, routes=routes))).kind == "structure"


def test_routes_over_links_that_are_not_there() -> None:
    routes = Routes.of_links(9)
    broken = replace(GATHER, timing=replace(GATHER.timing, routes=routes))
    assert "broken at route 8" in verify(broken).violation


def two_links(first: int, second: int, dst: int) -> Algorithm:
    """A ring's first row over two links."""
    routes = Routes(np.array([0, 2], dtype=np.int64), np.array([first, second], dtype=np.int32))
    columns = {name: column[:1] for name, column in COLUMNS.items()}
    columns["dst"] = np.array([dst], dtype=np.int32)
    timing = replace(GATHER.timing, routes=routes)
    return replace(with_columns(GATHER, **columns), timing=timing)


@pytest.mark.parametrize(("first", "second", "dst"), [(0, 1, 2), (0, 2, 3)])
def test_route_through_an_npu_or_with_a_gap(first: int, second: int, dst: int) -> None:
    verdict = verify(two_links(first, second, dst))
    assert verdict.kind == "route"
    assert "do not follow each other through switches" in verdict.violation


@pytest.mark.parametrize("offsets", [[1] * 13, [0] * 13, [0, 2, *[1] * 11]])
def test_broken_dependency_offsets(offsets: list[int]) -> None:
    columns = {"dep_offsets": np.array(offsets), "deps": np.zeros(1, dtype=np.int64)}
    assert verify(with_columns(GATHER, **columns)).kind == "structure"


def test_removed_npus() -> None:
    topology = handmade.line(4).without(npus=[3])
    broadcast = handmade.line_broadcast(4, 1)
    routes = Routes.of_links(topology.links)
    failed = replace(broadcast, timing=replace(broadcast.timing, topology=topology, routes=routes))
    assert verify(failed).violation == "the broadcast includes NPU 3, but it was removed"
    fewer = replace(failed, demands=(Collective.of("broadcast", range(3), handmade.SHARE),))
    assert verify(fewer).violation == "row 2 uses NPU 3, which was removed"


def test_relays_that_are_forbidden() -> None:
    """Along the line, NPU 1 passes on what NPUs 0 and 2 share."""
    broadcast = handmade.line_broadcast(3, 1)
    demand = Collective.of("broadcast", [0, 2], handmade.SHARE)
    assert verify(replace(broadcast, demands=(demand,))).ok
    verdict = verify(replace(broadcast, demands=(replace(demand, relay=False),)))
    assert verdict.violation == (
        "row 0 takes chunk 0 to NPU 1, which is outside its group and must not relay"
    )
    assert (verdict.kind, verdict.row) == ("route", 0)


def test_demand_outside_the_network() -> None:
    demand = Collective.of("all-gather", range(5), 5 * handmade.SHARE)
    verdict = verify(replace(GATHER, demands=(demand,)))
    assert verdict.violation == "the all-gather includes NPU 4, but NPUs are 0 to 3"


def test_timed_local_rows_cross_no_link() -> None:
    algorithm = handmade.over_star(handmade.scratch_all_reduce())
    verdict = verify(change(algorithm, 2, route=1))
    assert (verdict.kind, verdict.row) == ("route", 2)
    moved = change(algorithm, 2, end=int(algorithm.transfers.end[2]) + 1)
    assert (verify(moved).kind, verify(moved).row) == ("time", 2)


def test_too_many_sets_are_refused() -> None:
    slots, npus = 40_000, 1 << 20
    rows = [(0, 0, 1, False, 0, place(Buffer.SCRATCH, slot)) for slot in range(slots)]
    algorithm = handmade.placed(rows, Collective.of("reduce", range(npus), 16))
    with pytest.raises(InputError, match="8GiB"):
        verify(algorithm)
