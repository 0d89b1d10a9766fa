"""Timelines: valid trace events, no overlap on a track, and every picosecond of every link."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.strategies import COSTS, GB_S, group_collectives, networks, roomy

from weft.classical import baseline
from weft.collective import Collective
from weft.cost import CostModel
from weft.engine import Simulation, simulate
from weft.errors import FormatError
from weft.formats.perfetto import Timeline
from weft.planners import produce
from weft.replay import timeline_of
from weft.topology import Topology, load_topology

Event = dict[str, Any]


def events_of(run: Simulation, path: Path) -> list[Event]:
    timeline_of(run).save(path)
    document = json.loads(path.read_text(), parse_float=Decimal)
    assert set(document) == {"displayTimeUnit", "traceEvents"}
    events: list[Event] = document["traceEvents"]
    check_format(events)
    return events


def check_format(events: list[Event]) -> None:
    """The rules of the format, for the kinds of events that are used."""
    needed = {
        "M": {"name", "args"},
        "X": {"name", "ts", "dur", "tid"},
        "s": {"name", "cat", "id", "ts", "tid"},
        "f": {"name", "cat", "id", "ts", "tid", "bp"},
    }
    for event in events:
        assert needed[event["ph"]] | {"ph", "pid"} <= set(event)
        assert all(isinstance(event[key], int) for key in ("pid", "tid", "id") if key in event)
        assert all(event[key] >= 0 for key in ("ts", "dur") if key in event)
        assert isinstance(event["name"], str)
    tracks = {event["tid"]: event["pid"] for event in events if "tid" in event}
    assert all(tracks[e["tid"]] == e["pid"] for e in events if "tid" in e)
    ids = [(event["ph"], event["id"]) for event in events if event["ph"] in "sf"]
    assert len(set(ids)) == len(ids)
    assert {number for ph, number in ids if ph == "s"} == {n for ph, n in ids if ph == "f"}


def names(events: list[Event], what: str) -> dict[int, str]:
    key = "pid" if what == "process_name" else "tid"
    return {event[key]: event["args"]["name"] for event in events if event["name"] == what}


def slices(events: list[Event]) -> dict[int, list[tuple[int, int, str]]]:
    """By track: start and end in picoseconds, and name; in order, never overlapping."""
    tracks: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            start, length = (int(event[key] * 10**6) for key in ("ts", "dur"))
            assert length > 0
            tracks[event["tid"]].append((start, start + length, event["name"]))
    for track in tracks.values():
        track.sort()
        for before, after in pairwise(track):
            assert before[1] <= after[0]
    return tracks


@examples(30)
@given(networks(), COSTS, st.sampled_from([None, GB_S]), st.data())
def test_every_hold_and_every_send(
    network: Topology, cost: CostModel, reducer: int | None, data: st.DataObject
) -> None:
    demands = data.draw(st.lists(group_collectives(network), min_size=1, max_size=2))
    algorithm = produce(roomy(network, demands, cost), demands, cost=cost, threads=1)
    run = simulate(algorithm, order=data.draw(st.sampled_from(["plan", "fifo"])), reducer=reducer)
    with TemporaryDirectory() as folder:
        events = events_of(run, Path(folder) / "timeline.json")
    tracks, titles = slices(events), names(events, "thread_name")
    of_links = [tid for tid, name in titles.items() if not name.startswith("NPU")]
    assert len(of_links) == run.topology.links
    busy = [sum(end - start for start, end, _ in tracks[tid]) for tid in of_links]
    assert busy == run.busy.tolist()
    sends = [
        (start, end)
        for tid, name in titles.items()
        if name.startswith("NPU") and not name.endswith("adding")
        for start, end, _ in tracks[tid]
    ]
    moving = run.occupied.duration > 0
    starts = run.start[moving]
    ends = starts + run.occupied.duration[moving]
    assert sorted(sends) == sorted(zip(starts.tolist(), ends.tolist(), strict=True))
    check_arrows(events)


def check_arrows(events: list[Event]) -> None:
    """Each ends on a send that starts once the one it comes from has arrived."""
    places = {(e["ph"], e["id"]): (e["tid"], int(e["ts"] * 10**6)) for e in events if "id" in e}
    tracks = slices(events)

    def at(ph: str, number: int) -> tuple[int, int, str]:
        tid, time = places[ph, number]
        (found,) = [one for one in tracks[tid] if one[0] <= time < one[1]]
        return found

    for number in {number for _, number in places}:
        source, target = at("s", number), at("f", number)
        assert source[1] <= target[0]
        assert source[2].split()[:2] == target[2].split()[:2]  # the same chunk


def test_names_and_arrows_on_a_line(tmp_path: Path) -> None:
    network = load_topology("line:3", bandwidth=[50 * GB_S], latency=[0])
    run = simulate(baseline("direct", network, [Collective.of("broadcast", range(3), 1000)]))
    events = events_of(run, tmp_path / "t.json")
    assert list(names(events, "process_name").values()) == ["NPUs", "links"]
    assert list(names(events, "thread_name").values()) == [
        *("NPU 0", "NPU 1", "NPU 2"),
        *(f"{network.link_name(link)} 50GB/s" for link in range(4)),
    ]
    assert "0 > 1 50GB/s" in names(events, "thread_name").values()
    sort = [e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index"]
    assert sort == list(range(1, 8))
    label = {e["name"]: e for e in events if e["ph"] == "X"}
    assert label["chunk 0 > 1"]["dur"] == Decimal("0.020000")
    assert label["chunk 0 > 1"]["args"] == {"bytes": 1000}
    assert label["chunk 0, 1 > 2"]["pid"] == 2
    assert sum(e["ph"] == "s" for e in events) == 1  # NPU 1 passes on what it got


def test_adding_has_a_track(tmp_path: Path) -> None:
    network = load_topology("fc:3", bandwidth=[GB_S], latency=[0])
    sums = baseline("direct", network, [Collective.of("reduce", range(3), 1000, 1, 0)])
    events = events_of(simulate(sums, reducer=GB_S), tmp_path / "t.json")
    titles = names(events, "thread_name")
    (adding,) = [tid for tid, name in titles.items() if name == "NPU 0 adding"]
    us = 10**6
    assert [one[:2] for one in slices(events)[adding]] == [(us, 2 * us), (2 * us, 3 * us)]
    assert {one[2] for one in slices(events)[adding]} == {
        "add chunk 0 from 1",
        "add chunk 0 from 2",
    }


def test_compressed_files_are_the_same_and_depend_on_the_run_alone(tmp_path: Path) -> None:
    run = simulate(
        baseline("direct", load_topology("ring:4"), [Collective.of("all-gather", range(4), 4096)])
    )
    for name in ("a.json", "a.json.gz", "b.json.gz"):
        timeline_of(run).save(tmp_path / name)
    packed = (tmp_path / "a.json.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "a.json").read_bytes()
    assert packed == (tmp_path / "b.json.gz").read_bytes()
    with pytest.raises(FormatError, match="name it so"):
        timeline_of(run).save(tmp_path / "a.txt")
    assert len(list(tmp_path.iterdir())) == 3


def test_any_name_is_quoted(tmp_path: Path) -> None:
    none = np.empty((0, 2), dtype=np.int64)
    one, zero = np.array([1]), np.array([0])
    name = 'a "b"\n\\ü'
    Timeline([(name, name)], zero.astype(np.int32), zero, one, [name], -one, none).save(
        tmp_path / "t.json"
    )
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X"] == [name]
    assert list(names(events, "thread_name").values()) == [name]
