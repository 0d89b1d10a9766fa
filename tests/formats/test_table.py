"""Plain tables: JSON that keeps everything, CSV that keeps the rows; nonsense is named by line."""

from __future__ import annotations

import json
import tempfile
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chakra_samples import assert_same, random_algorithm, ring, star, told, with_places
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from weft.algorithm import Algorithm
from weft.collective import Collective, all_reduce_of
from weft.errors import FormatError, InputError, WeftError
from weft.formats import Hints, read, write
from weft.formats.header import LINK_COLUMNS

SAMPLES = {
    "ring": ring(4),
    "sums": ring(5, reduce=True),
    "untimed": ring(3, timed=False),
    "switch": star(4),
    "places": with_places(),
    "told": told(),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_json_keeps_everything(name, tmp_path):
    write(SAMPLES[name], tmp_path / "a.json")
    assert_same(SAMPLES[name], read(tmp_path / "a.json").algorithm)


@pytest.mark.parametrize("seed", range(25))
def test_json_keeps_random_algorithms(seed, tmp_path):
    algorithm = random_algorithm(seed)
    write(algorithm, tmp_path / "a.json")
    assert_same(algorithm, read(tmp_path / "a.json").algorithm)


def test_an_all_reduce_in_any_number_of_pieces(tmp_path):
    demand = all_reduce_of(range(4), 1000, 3)
    algorithm = Algorithm((demand,), ring(4, timed=False).transfers)
    write(algorithm, tmp_path / "a.json")
    assert_same(algorithm, read(tmp_path / "a.json").algorithm)


def test_what_json_cannot_hold_is_refused(tmp_path):
    for value in (float("nan"), -float("inf"), [1]):
        with pytest.raises(InputError, match="cannot be written as JSON"):
            write(replace(ring(3), provenance={"x": value}), tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()


def test_a_table_written_by_hand(tmp_path):
    (tmp_path / "mine.json").write_text(
        """{
          "weft_table": 2,
          "demands": [{"kind": "broadcast", "ranks": 3, "size": 64}],
          "columns": {"groups": [2, 0, 1]},
          "transfers": {"chunk": [0, 0], "src": [2, 0], "dst": [0, 1], "reduce": [false, false]}
        }"""
    )
    assert read(tmp_path / "mine.json").violation() is None


BASE = {
    "weft_table": 2,
    "demands": [{"kind": "broadcast", "ranks": 2, "size": 64}],
    "columns": {"groups": [0, 1]},
    "transfers": {"chunk": [0], "src": [0], "dst": [1], "reduce": [False]},
}


def _changed(**changes):
    return json.dumps(BASE | changes, indent=1)


def _collective(**changes):
    groups = changes.pop("group", [0, 1])
    demand = BASE["demands"][0] | {"ranks": len(groups)} | changes
    return _changed(demands=[demand], columns={"groups": groups})


def _transfers(**changes):
    return _changed(transfers=BASE["transfers"] | changes)


WRONG = {
    "": "line 1: not valid JSON",
    "[1, 2]": "is not a table of Weft",
    "{}": "is not a table of Weft",
    '{"weft_table": 1': "line 1: not valid JSON",
    "[" * 100_000: "nests too deep",
    _changed(weft_table=1): "line 2: version 1 of the table; this Weft reads version 2",
    _changed(weft_table=3): "line 2: version 3 of the table",
    _changed(weft_table=[[1]]): "version \\[\\[1\\]\\] of the table",
    _changed(demands=[], columns={"groups": []}): "at least one collective",
    _changed(demands={}): "demands is wrong: expected array",
    _changed(demnads=[]): "unknown key 'demnads'; did you mean 'demands'",
    _changed(columns={}): "columns: groups is missing",
    _changed(columns={"groups": [0, 1], "link_src": []}): "nothing is said in 'link_src'",
    _changed(columns={"groups": [0, 1, 2]}): "the groups or the parts do not fit the demands",
    _changed(columns={"groups": [0]}): "collective 0: the group of a broadcast makes no sense",
    _changed(columns={"groups": ["a"]}): "expected int",
    _collective(rnaks=2): "unknown key 'rnaks'; did you mean 'ranks'",
    _collective(kind="broadcats"): "line 4: collective 0: unknown collective 'broadcats'",
    _collective(group=[0, 0]): "distinct NPU numbers",
    _collective(group=[0, 1 << 70]): "number that is too large|out of range",
    _collective(group=[]): "the group is empty",
    _collective(size=-1): "size -1 B is out of range",
    _collective(size=10**40): "out of range",
    _collective(size=1.5): "collective 0: size is wrong",
    _collective(chunks_per_share=1 << 27): "far more than the file can move",
    _collective(chunks_per_share=0): "0 chunks per share",
    _collective(root=7): "root 7 is not an NPU of the group",
    _collective(kind="custom"): "needs to know what moves",
    _transfers(chunk=[0, 0]): "column src has 1 entries, but chunk has 2",
    _transfers(chunk=["a"]): "chunk is wrong: expected int",
    _transfers(chunk=[1 << 40]): "chunk has a number that is too large",
    _transfers(start_ps=[0]): "route, start_ps and end_ps must be there together",
    _transfers(start_ps=[0], end_ps=[1], route=[0]): "needs a topology",
    _transfers(deps=[0]): "need both dep_count and deps",
    _transfers(deps=[0], dep_count=[2]): "dep_count\\[0\\] is 2; expected 0 to 1",
    _transfers(deps=[0, 0], dep_count=[1]): "dep_count does not fit deps",
    _changed(cost={"latency_model": "x", "switching": "y"}): "cost: unknown latency",
    _changed(
        routes="listed", columns={"groups": [0, 1], "route_length": [1], "route_links": []}
    ): "routes: route_length\\[0\\] is 1",
    _changed(
        topology={"name": "t", "npus": 10**9},
        columns={"groups": [0, 1]} | {name: [] for name in LINK_COLUMNS},
    ): "1000000000 NPUs and 0 switches make no sense",
}


@pytest.mark.parametrize("text", WRONG)
def test_json_of_the_wrong_shape_is_named(text, tmp_path):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(FormatError, match=WRONG[text]) as caught:
        read(tmp_path / "a.json", kind="table")
    assert str(caught.value).startswith(str(tmp_path / "a.json"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["ring", "sums", "untimed", "switch"])
def test_csv_keeps_the_rows(name, tmp_path):
    algorithm = SAMPLES[name]
    write(algorithm, tmp_path / "a.csv")
    demand = algorithm.demands[0]
    hints = Hints(demand.kind, demand.size, demand.chunks_per_share, demand.group, root=demand.root)
    rows = read(tmp_path / "a.csv", hints).algorithm.transfers
    for column in ("chunk", "src", "dst", "reduce"):
        assert np.array_equal(getattr(rows, column), getattr(algorithm.transfers, column))
    assert not rows.timed


def test_csv_keeps_places_and_dependencies(tmp_path):
    places = with_places()
    one = Algorithm((Collective.of("all-reduce", range(8), 640),), places.transfers)
    write(one, tmp_path / "a.csv")
    rows = read(tmp_path / "a.csv", Hints("all-reduce", 640, 1, range(8))).algorithm.transfers
    for name, column in one.transfers.columns().items():
        assert np.array_equal(getattr(rows, name), column), name
    with pytest.raises(InputError, match="of one collective, not of 2; write JSON"):
        write(places, tmp_path / "b.csv")
    assert not (tmp_path / "b.csv").exists()


def test_csv_rows_know_their_line(tmp_path):
    (tmp_path / "a.csv").write_text("src,dst,chunk,reduce\n\n0,1,0,0\n\n2,1,0,false\n")
    found = read(tmp_path / "a.csv", Hints("broadcast", 64))
    assert found.violation() == "line 5: NPU 2 sends chunk 0 (row 1) but never has it"


WRONG_CSV = {
    "": "is not a table of transfers: no column chunk",
    "chunk,src,dst\n0,0,1\n": "line 1: is not a table of transfers: no column reduce",
    "chunk,src,dst,reduce,colour\n": "line 1: unknown column 'colour'",
    "chunk,src,dst,reduce,src\n": "line 1: column src is there twice",
    "chunk,src,dst,reduce\n0,0,1\n": "line 2: has 3 cells; expected 4",
    "chunk,src,dst,reduce\n0,0,1,0\n0,x,1,0\n": "line 3: src is 'x'; expected a whole number",
    "chunk,src,dst,reduce\n0,-1,1,0\n": "line 2: src is '-1'; expected a whole number",
    "chunk,src,dst,reduce\n0,nan,1,0\n": "line 2: src is 'nan'",
    "chunk,src,dst,reduce\n0,1e3,1,0\n": "line 2: src is '1e3'",
    f"chunk,src,dst,reduce\n0,{'9' * 5000},1,0\n": "line 2: src is '9999",
    "chunk,src,dst,reduce\n0,4294967296,1,0\n": "line 2: src is '4294967296'",
    "chunk,src,dst,reduce\n0,0,1,maybe\n": "line 2: reduce is 'maybe'; expected 0 or 1",
    "chunk,src,dst,reduce,deps\n0,0,1,0,1 x\n": "line 2: deps is '1 x'",
    'chunk,src,dst,reduce\n"0,0,1,0\n' + "x" * 200_000: "not valid CSV|has 1 cells",
}


@pytest.mark.parametrize("text", WRONG_CSV)
def test_csv_nonsense_is_named(text, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(FormatError, match=WRONG_CSV[text]) as caught:
        read(tmp_path / "a.csv", Hints("broadcast", 64))
    assert str(caught.value).startswith(str(tmp_path / "a.csv"))


def test_csv_needs_the_collective(tmp_path):
    (tmp_path / "a.csv").write_text("chunk,src,dst,reduce\n0,0,1,0\n")
    for hints, message in (
        (Hints(), "name it with --collective"),
        (Hints("broadcast"), "broadcast needs --size"),
        (Hints("custom", 64), "custom takes no --size, only --pattern"),
        (Hints("broadcast", 64, group=(5,), root=7), "root 7 is not an NPU"),
    ):
        with pytest.raises(FormatError, match=message):
            read(tmp_path / "a.csv", hints)


def test_an_npu_far_away_is_no_claim_on_memory(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("chunk,src,dst,reduce\n0,0,2147483646,0\n")
    with pytest.raises(
        FormatError, match=r"2147483647 chunks, far more than the rows move; .*--gr"
    ):
        read(path, Hints("all-reduce", 1 << 40))
    path.write_text("chunk,src,dst,reduce\n0,0,5000,0\n")
    read(path, Hints("broadcast", 64, group=[0, 5000])).verified()


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_small_files_take_little_memory(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    write(SAMPLES["untimed"], path)
    tracemalloc.start()
    read(path, Hints("all-gather", 3003))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


@examples(100)
@given(
    seed=st.integers(0, 2**32),
    name=st.sampled_from(sorted(SAMPLES)),
    suffix=st.sampled_from([".json", ".csv"]),
)
def test_any_changed_bytes_are_read_or_refused(seed, name, suffix):
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        with suppress(InputError):  # several collectives, which CSV does not take
            write(SAMPLES[name], path)
        if not path.exists():
            return
        content = bytearray(path.read_bytes())
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(content)))
            match rng.integers(4):
                case 0:
                    content[at] = int(rng.integers(256))
                case 1:
                    content[at:at] = b"9" * int(rng.integers(1, 30))
                case 2:
                    content[at:at] = rng.choice([b"-", b"null", b"[", b'"', b"{", b"1e9", b","])
                case _:
                    del content[at : at + int(rng.integers(1, 20))]
        path.write_bytes(bytes(content))
        kind = "csv" if suffix == ".csv" else "table"
        with suppress(WeftError):
            read(path, Hints("all-gather", 4003), kind=kind).violation()
