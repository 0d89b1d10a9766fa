"""Comparisons: the same demands for all, every run judged, winners and ratios right."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from papers.compare import NETWORKS, write

from tests.examples import examples
from tests.strategies import COSTS, group_collectives, networks, roomy, same
from weft import _core
from weft.algorithm import Algorithm
from weft.classical import BASELINES, baseline
from weft.classical.planner import Classical
from weft.cli.comparison import notes
from weft.collective import Collective, Plan, Request
from weft.comparison import Comparison, Refusal, Row, Run, compare, parse_sizes
from weft.comparison.contention import collided, side_by_side
from weft.comparison.files import draw_lines, picture_of
from weft.cost import CostModel
from weft.documents import check_new_file
from weft.errors import FormatError, InputError
from weft.judge import verify
from weft.planners import PLANNERS, Problem, produce
from weft.planners.sends import Sends
from weft.progress import Tracker
from weft.topology import Topology, load_topology


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1KiB:64KiB", [1 << 10, 1 << 12, 1 << 14, 1 << 16]),
        ("1KiB:63KiB", [1 << 10, 1 << 12, 1 << 14]),
        ("1kB:8kB:2", [1000, 2000, 4000, 8000]),
        ("1MiB:1MiB", [1 << 20]),
        ("1MiB", [1 << 20]),
        ("1MiB,64KiB,1024KiB", [1 << 16, 1 << 20]),
    ],
)
def test_sizes(text: str, sizes: list[int]) -> None:
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "size ''"),
        ("1KiB,", "size ''"),
        (":", "size ''"),
        ("1MiB:1KiB", "reversed; write them like 1KiB:1MiB"),
        ("1KiB:1MiB:2:3", "neither a range nor a list"),
        ("1KiB:1MiB,1GiB", "neither a range nor a list"),
        ("1KiB:1MiB:1", "factor '1'"),
        ("1KiB:1MiB:1.5", "factor '1.5'"),
        ("1KiB:1MiB:" + "9" * 5000, "expected 2 to 1073741824"),
        ("0:1MiB", "size '0'"),
        (",".join(f"{size}B" for size in range(1, 70)), "are 69; expected at most 64"),
    ],
)
def test_sizes_that_make_no_sense(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_sizes(text)


def test_runs_are_what_each_method_makes() -> None:
    network, sizes = load_topology("mesh:3x3"), [1024, 16384]
    found = compare(network, "all-gather", sizes)
    assert found.names == tuple(n for n in BASELINES if "all-gather" in BASELINES[n].kinds)
    assert found.verified
    for row, size in zip(found.rows, sizes, strict=True):
        demand = Collective.of("all-gather", range(9), size)
        for name, method in {"weft": "auto", "direct": "direct"}.items():
            made = produce(network, [demand], choose_chunks=[True], method=method)
            run = row.runs[name]
            assert (run.time, run.transfers) == (made.time, len(made.transfers))
            assert run.chunks == made.demands[0].chunks_per_share
            assert run.busbw_GBps == pytest.approx(size * 8 / 9 / made.time * 1e3)
        assert row.bound <= min(run.time for run in row.runs.values())
        assert row.winner == min(row.runs, key=lambda name: row.runs[name].time)


def without_seconds(found: Comparison) -> dict[str, Any]:
    figures = found.to_dict()
    for row in figures["sizes"]:
        for run in row["runs"].values():
            run.pop("synthesis_s", None)
    return figures


def test_threads_change_nothing() -> None:
    one, two = (compare("mesh:3x3", "all-reduce", "4KiB", threads=count) for count in (1, 2))
    assert without_seconds(one) == without_seconds(two)


def run(time: int, method: str = "matching", violation: str | None = None) -> Run:
    return Run(method, 1, time, 1.0, 1.0, 1, 0.0, violation)


def test_who_wins() -> None:
    others = {"direct": run(8), "ring": run(6), "rhd": Refusal("no power of two")}
    row = Row(1 << 10, 2, 1.0, run(4), others)
    assert (row.winner, row.best_baseline, row.speedup) == ("weft", "ring", 1.5)
    assert replace(row, weft=run(6)).winner == "weft"
    slower = replace(row, weft=run(12))
    assert (slower.winner, slower.speedup) == ("ring", 0.5)
    wrong = replace(row, weft=run(1, violation="a chunk is missing"))
    assert (wrong.winner, wrong.violations) == ("ring", {"weft": "a chunk is missing"})
    alone = Row(1 << 10, 2, 1.0, run(4), {"rhd": others["rhd"]}, run(5))
    assert (alone.best_baseline, alone.speedup, alone.gain) == (None, None, 1.25)


def test_an_answer_that_is_classical_is_said() -> None:
    rows = [
        Row(1 << 10, 2, 1.0, run(4, "direct"), {"direct": run(4, "direct")}),
        Row(1 << 20, 2, 1.0, run(4, "direct + steiner"), {"direct": run(2, "direct")}),
    ]
    assert [row.classical for row in rows] == ["direct", None]
    parts = (("all-gather",), ((0, 1),), ("direct",), tuple(rows))
    said = list(notes(Comparison(load_topology("ring:2"), CostModel(), 0, *parts)))
    assert said == [
        "Weft's answer is a classical algorithm at 1KiB: direct",
        "direct is faster than Weft's answer at 1MiB: x2.000",
        "all verified",
    ]


def put(monkeypatch: pytest.MonkeyPatch, planner: Classical) -> None:
    """In the place of the planner that has its name."""
    _ = len(PLANNERS)  # all are loaded
    monkeypatch.setitem(PLANNERS._entries, planner.name, (planner.rank, planner))


def test_a_wrong_baseline_never_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge looks at every run: an algorithm that sends nothing would be fastest."""

    def nothing(_network: Topology, _demand: Collective) -> Sends:
        return Sends.of([], [], [], [], [])

    put(monkeypatch, Classical("direct", nothing, ("all-gather",), "nothing"))
    found = compare("ring:4", "all-gather", "1KiB", against=["direct"])
    row = found.rows[0]
    assert row.runs["direct"].time == 0
    # Weft's own answer considers it too, and does without it.
    assert (row.winner, row.best_baseline, found.verified) == ("weft", None, False)
    assert any(note.startswith("direct is WRONG at 1KiB") for note in notes(found))


def test_baselines_that_cannot_are_refused_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(_network: Topology, _demand: Collective) -> Sends:
        raise InputError("direct needs an even number of NPUs")

    put(monkeypatch, Classical("direct", odd, ("all-gather",), "odd"))
    row = compare("ring:3", "all-gather", "1KiB", against=["direct"]).rows[0]
    assert row.baselines == {"direct": Refusal("direct needs an even number of NPUs")}
    assert row.to_dict()["runs"]["direct"] == {"refused": "direct needs an even number of NPUs"}
    row = compare("ring:3", "broadcast", "1KiB", against=["direct"]).rows[0]
    assert "does not know broadcast" in str(row.baselines["direct"])
    assert "direct" not in compare("ring:3", "broadcast", "1KiB").names


def test_baselines_that_are_too_large_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.comparison.running.MOST_ROWS", 10)
    row = compare("ring:4", "all-gather", "1KiB", against=["direct"]).rows[0]
    said = "about 16 rows; baselines of more than 10 are not run"
    assert row.baselines == {"direct": Refusal(said)}


@pytest.mark.parametrize("spec", ["mesh:6x6", "torus:3x4x3", "switch:9", "fc:7"])
@pytest.mark.parametrize("kind", ["all-gather", "all-reduce", "all-to-all"])
def test_rows_are_foreseen(spec: str, kind: str) -> None:
    network = load_topology(spec)
    demands = [Collective.of(kind, range(network.npus), 1 << 20)]
    rows = len(baseline("direct", network, demands).transfers)
    assert BASELINES["direct"].rows(Problem.of(network, demands)) == pytest.approx(rows, rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"against": ["rnig", "direct"]}, "unknown baseline 'rnig'"),
        ({"against": []}, "no baseline to compare with"),
        ({"sizes": []}, "no collective to compare"),
        ({"sizes": None}, "all-gather needs size"),
        ({"sizes": ["1KiB", "much"]}, "size 'much'"),
        ({"groups": []}, "no collective to compare"),
        ({"groups": [[0, 9]]}, "NPU 9"),
        ({"collective": "all-gahter"}, "did you mean 'all-gather'"),
        ({"collective": []}, "go with a collective's name"),
        ({"collective": [], "sizes": None}, "no collective to compare"),
        ({"seed": -1}, "seed -1"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    given = {"topology": "ring:4", "collective": "all-gather", "sizes": "1KiB", **arguments}
    with pytest.raises(InputError, match=message):
        compare(**given)


def test_a_comparison_can_be_given_up() -> None:
    progress = Tracker()
    progress.cancel()
    with pytest.raises(_core.Cancelled):
        compare("ring:4", "all-gather", "1KiB", progress=progress)


def test_what_is_run_is_told() -> None:
    said: list[str] = []

    class Heard(Tracker):
        def begin_step(self, step: str) -> None:
            said.append(step)
            super().begin_step(step)

    groups = [[0, 1], [2, 3]]
    compare("ring:4", "all-gather", "1KiB", against=["direct"], groups=groups, progress=Heard())
    assert said == [
        "1 of 4: weft at 1KiB",
        "2 of 4: direct at 1KiB",
        "3 of 4: group 0 alone at 1KiB",
        "4 of 4: group 1 alone at 1KiB",
    ]


def test_requests_that_say_their_own_size() -> None:
    request = Request("all-to-allv", matrix=[[0, 3000], [1000, 0]])
    found = compare("line:2", request, against=["direct"])
    assert [row.size for row in found.rows] == [3000]
    assert found.rows[0].gain is None


def test_planned_alone_groups_get_in_each_others_way() -> None:
    """1 us a hop: 0 to 1 goes first and holds up 0 to 2, which has two hops to go."""
    network = load_topology("line:3", "1GB/s", "0")
    near = Collective.of("broadcast", (0, 1), 1000)
    far = Collective.of("broadcast", (0, 2), 1000)
    row = compare(network, [Plan([near, far], [1, 1])]).rows[0]
    assert isinstance(row.alone, Run)
    assert (row.weft.time, row.alone.time, row.gain) == (2_000_000, 3_000_000, 1.5)


def test_all_rows_of_a_mesh() -> None:
    rows = [range(8 * i, 8 * i + 8) for i in range(8)]
    plan = Plan([Collective.of("all-to-all", row, 1 << 20) for row in rows], [2] * 8)
    row = compare("mesh:8x8", [plan]).rows[0]
    assert not row.violations
    assert row.gain is not None
    assert row.gain > 1.1


def test_switches_that_copy_have_no_run_of_groups_alone() -> None:
    groups = [[0, 1], [2, 3]]
    row = compare("switch:4,multicast", "all-gather", "1KiB", groups=groups).rows[0]
    assert isinstance(row.alone, Refusal)
    assert row.gain is None


@examples(25)
@given(networks(), COSTS, st.data())
def test_any_algorithms_side_by_side(network: Topology, cost: CostModel, data: Any) -> None:
    network = network.plain
    demands = data.draw(st.lists(group_collectives(network), min_size=1, max_size=3))
    network = roomy(network, demands, cost)
    methods = [data.draw(st.sampled_from(["auto", "direct"])) for _ in demands]
    single = [
        produce(network, [demand], cost=cost, method=method, threads=1)
        for demand, method in zip(demands, methods, strict=True)
    ]
    if len(single) == 1:
        assert same(side_by_side(single), in_order(single[0]))
    found = collided(single)
    assert verify(found).ok, verify(found).violation
    assert found.demands == tuple(demands)
    assert len(found.transfers) == sum(len(part.transfers) for part in single)


def in_order(algorithm: Algorithm) -> Algorithm:
    """The same with both places, if one is named, and rows in order of start."""
    rows = algorithm.transfers
    if rows.src_place is not None or rows.dst_place is not None:
        places = (rows.src_place, rows.dst_place)
        reads, writes = (rows.chunk if place is None else place for place in places)
        rows = replace(rows, src_place=reads, dst_place=writes)
    assert rows.start is not None
    assert (np.diff(rows.start) >= 0).all()
    return replace(algorithm, rows=rows)


def test_pictures() -> None:
    found = compare("ring:4", "all-gather", "1KiB,4KiB", groups=[[0, 1], [2, 3]])
    svg, png = picture_of(found, ".svg"), picture_of(found, ".PNG")
    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert svg == picture_of(found, ".svg")
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", png[16:24]) == (1200, 720)
    still = compare("ring:4", "all-gather", "1KiB", groups=[[2]])
    assert (still.rows[0].winner, still.rows[0].speedup) == ("weft", 1.0)
    ET.fromstring(picture_of(still, ".svg"))
    pdf = picture_of(found, ".pdf")
    assert pdf.startswith(b"%PDF-")
    assert pdf == picture_of(found, ".pdf")


def test_every_line_of_a_picture_has_its_own_look_and_its_name() -> None:
    axes = Figure().add_subplot()
    found = compare("h100:2", "all-reduce", "1KiB,1MiB")
    drawn = [n for n in found.names if any(isinstance(r.baselines[n], Run) for r in found.rows)]
    assert 10 < len(drawn) < len(found.names)
    draw_lines(axes, found)
    assert axes.get_legend_handles_labels()[1] == ["lower bound", "weft", *drawn]
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.lines}
    assert len(looks) == len(axes.lines)
    assert len({line.get_color() for line in axes.lines}) == len(axes.lines)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone/a.csv", "there is no folder"),
        (".", "it is a folder"),
        ("/dev/null", "device"),
        ("/proc/a.csv", "cannot be written"),
        ("x" * 300, "too long"),
    ],
)
def test_files_that_cannot_be_written(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        check_new_file(tmp_path / name)
    check_new_file(tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test_the_page_of_the_documentation(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    write(tmp_path, NETWORKS[2:3], ["all-gather"], "4KiB,16KiB")
    text = (tmp_path / "comparison.md").read_text()
    assert "Written by `python -m papers compare`" in text
    assert "| direct | " in text
    assert "## Where a classical algorithm wins" in text
    assert "(figures/compare-dgx1-all-gather.svg)" in text
    assert (tmp_path / "figures" / "compare-dgx1-all-gather.svg").read_bytes().startswith(b"<?xml")
