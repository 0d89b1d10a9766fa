"""The compact store: what is written comes back, whole files or none, and damage is named."""

from __future__ import annotations

import json
import os
import struct
import tempfile
import threading
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chakra_samples import assert_same, random_algorithm, ring, star, told, with_places
from compact_samples import assert_same_compact, logged, network, symmetric
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.algorithm import (
    Algorithm,
    CompactRows,
    PeriodicRows,
    RepairedExchange,
    RepairedRows,
    RoundLog,
    Timing,
    UnnamedFile,
)
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import FormatError, InputError
from weft.formats import Hints, read, store, write
from weft.judge import verify
from weft.planners import Problem
from weft.planners.methods.repaired import plan_repaired

HEAD = struct.Struct("<8sIIQQ")
COMPACT = [logged(), logged(70), logged(3, "reduce-scatter"), symmetric(), symmetric(2)]


def directory_of(path: Path) -> dict:
    content = path.read_bytes()
    *_, place, length = HEAD.unpack(content[: HEAD.size])
    assert place + length == len(content)
    return json.loads(content[place:])


def rewrite(path: Path, change) -> None:
    """Change the directory, and make its checksum fit."""
    content, directory = path.read_bytes(), directory_of(path)
    magic, version, _, place, _ = HEAD.unpack(content[: HEAD.size])
    text = json.dumps(change(directory) or directory).encode()
    head = HEAD.pack(magic, version, zlib.crc32(text), place, len(text)).ljust(64, b"\0")
    path.write_bytes(head + content[64:place] + text)


@pytest.mark.parametrize(
    "algorithm", [ring(8), ring(5, timed=False), star(7), with_places(), told()]
)
def test_tables_come_back(algorithm, tmp_path):
    write(algorithm, tmp_path / "a.weft")
    assert_same(weft.load(tmp_path / "a.weft"), algorithm)
    assert os.listdir(tmp_path) == ["a.weft"]


@given(st.integers(0, 2**32))
def test_random_tables_come_back(seed):
    algorithm = random_algorithm(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.weft"
        store.write(algorithm, path)
        assert_same(weft.load(path), algorithm)


@pytest.mark.parametrize(
    ("spec", "kind", "chunks"),
    [("torus:4x4", "all-gather", 2), ("switch:4", "all-to-all", 1), ("mesh:3x3", "all-reduce", 40)],
)
def test_what_is_synthesized_comes_back(spec, kind, chunks, tmp_path):
    algorithm = weft.synthesize(network(spec), kind, "1MB", chunks=chunks).algorithm
    write(algorithm, tmp_path / "a.weft")
    loaded = weft.load(tmp_path / "a.weft")
    assert loaded.time == algorithm.time
    assert_same(loaded, algorithm)
    if isinstance(algorithm.rows, CompactRows):
        assert_same_compact(loaded, algorithm)


@pytest.mark.parametrize("algorithm", COMPACT)
def test_compact_rows_come_back(algorithm, tmp_path):
    for name in "ab":
        write(algorithm, tmp_path / f"{name}.weft")
    loaded = weft.load(tmp_path / "a.weft")
    assert_same_compact(loaded, algorithm)
    assert loaded.topology.translates
    write(loaded, tmp_path / "c.weft")
    first = (tmp_path / "a.weft").read_bytes()
    assert all((tmp_path / f"{name}.weft").read_bytes() == first for name in "bc")


def test_arrays_cannot_be_written(tmp_path):
    write(logged(), tmp_path / "a.weft")
    rows = weft.load(tmp_path / "a.weft").rows
    with pytest.raises(TypeError, match="does not support item assignment"):
        rows.log[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        rows.offsets[0] = 1


def overwritten(path: Path) -> None:
    """Write all of a file over, with bytes that make no sense."""
    with path.open("r+b") as file:
        file.write(b"\xff" * path.stat().st_size)
    os.utime(path, ns=(0, 0))  # clocks of file systems are slow: it may be the same instant


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 3)


@pytest.mark.parametrize("change", [overwritten, cut_short])
@pytest.mark.parametrize("make", [logged, symmetric, lambda: ring(40)])
def test_what_was_read_stays_as_it_was_whatever_becomes_of_the_file(make, change, tmp_path):
    write(make(), tmp_path / "a.weft")
    loaded = weft.load(tmp_path / "a.weft")
    change(tmp_path / "a.weft")
    if isinstance(loaded.rows, RoundLog):
        for use in (
            lambda: verify(loaded),
            lambda: loaded.transfers,
            lambda: loaded.of_npu(0),
            lambda: write(loaded, tmp_path / "b.weft"),
        ):
            with pytest.raises(FormatError, match=r"a\.weft: changed while in use"):
                use()
        assert not (tmp_path / "b.weft").exists()
    else:
        same(loaded, make())


def test_a_log_that_changes_while_it_is_judged(tmp_path):
    """Whatever the judge reads, it says so in the end, and never that the log is right."""
    path = tmp_path / "a.weft"
    weft.synthesize("torus:24x24", "all-gather", "1MiB", chunks=1, method="rounds").save(path)
    content, told = path.read_bytes(), weft.load(path)
    size, rng = len(told.rows.log), np.random.default_rng(5)
    disturbed, ended = threading.Event(), threading.Event()

    def disturb() -> None:
        with path.open("r+b", buffering=0) as file:
            while not ended.is_set():
                at = int(rng.integers(size))
                os.pwrite(file.fileno(), rng.bytes(min(256, size - at)), 64 + at)
                os.ftruncate(file.fileno(), 64 + int(rng.integers(size)))
                os.pwrite(file.fileno(), content, 0)
                os.utime(path, ns=(0, 0))
                disturbed.set()

    writer = threading.Thread(target=disturb)
    writer.start()
    try:
        disturbed.wait()
        for _ in range(20):
            for use in (lambda: verify(told), lambda: told.of_npu(3), lambda: told.transfers):
                with pytest.raises(FormatError, match="changed while in use"):
                    use()
    finally:
        ended.set()
        writer.join()


def test_arrays_that_lie_over_each_other_are_refused(tmp_path):
    """A small file could ask for much memory."""
    path = tmp_path / "a.weft"
    write(symmetric(), path)
    entry = {"name": "x", "type": "uint8", "length": 64, "place": 64, "checksum": 1}
    rewrite(path, lambda d: d["arrays"].extend(entry | {"name": f"x{i}"} for i in range(99)))
    with pytest.raises(FormatError, match=r"a\.weft: its arrays lie over each other"):
        weft.load(path)


def test_a_log_lies_behind_the_head(tmp_path):
    algorithm = logged()
    write(algorithm, tmp_path / "a.weft")
    content = (tmp_path / "a.weft").read_bytes()
    log = algorithm.rows.log.tobytes()
    assert content[64 : 64 + len(log)] == log
    entries = directory_of(tmp_path / "a.weft")["arrays"]
    assert [entry["name"] for entry in entries][:2] == ["log", "offsets"]
    assert all(entry["place"] % 64 == 0 for entry in entries)
    assert [entry["name"] for entry in entries if entry["checksum"] is None] == ["log"]


def test_what_a_network_was_before_failures_comes_back(tmp_path):
    whole = network("torus:3x3")
    broken = whole.without(links=[(0, 1)], npus=[4])
    result = weft.synthesize(broken, "broadcast", "9KB")
    result.save(tmp_path / "a.weft")
    loaded = weft.load(tmp_path / "a.weft").topology
    assert not loaded.translates
    assert loaded.removed == {4}
    assert loaded.whole.translates
    for name in ("src", "dst", "bandwidth", "latency"):
        assert np.array_equal(getattr(loaded, name), getattr(broken, name))
        assert np.array_equal(getattr(loaded.whole, name), getattr(whole, name))


def unnamed(algorithm, folder: Path | None):
    """The same algorithm with its log in a file without a name."""
    file = UnnamedFile(folder)
    os.pwrite(file.fd, algorithm.rows.log.tobytes(), 64)
    return replace(algorithm, rows=replace(algorithm.rows, file=file)), file.fd


def test_a_log_in_an_unnamed_file_is_named_and_not_copied(tmp_path):
    algorithm, fd = unnamed(logged(), tmp_path)
    (tmp_path / "a.weft").write_text("old")
    write(algorithm, tmp_path / "a.weft")
    assert (tmp_path / "a.weft").stat().st_ino == os.fstat(fd).st_ino
    before = (tmp_path / "a.weft").read_bytes()
    write(algorithm, tmp_path / "b.weft")  # it has a name by now, and is copied
    assert (tmp_path / "b.weft").stat().st_ino != os.fstat(fd).st_ino
    for name in "ab":
        assert (tmp_path / f"{name}.weft").read_bytes() == before
        assert_same_compact(weft.load(tmp_path / f"{name}.weft"), logged())
    assert (tmp_path / "a.weft").stat().st_mode == (tmp_path / "b.weft").stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["a.weft", "b.weft"]


@pytest.mark.parametrize("reason", ["memory", "no name ever", "no link"])
def test_a_log_that_cannot_be_named_is_copied(reason, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        if reason == "no name ever":
            patch.setattr(os, "O_TMPFILE", os.O_CREAT)
        algorithm, _ = unnamed(logged(), None if reason == "memory" else tmp_path)
    if reason == "no link":  # nor any other file without a name
        monkeypatch.setattr(os, "link", lambda *_, **__: os.stat(tmp_path / "none"))
        monkeypatch.setattr(os, "O_TMPFILE", os.O_CREAT)
    for name in "ab":
        write(algorithm, tmp_path / f"{name}.weft")
        assert_same_compact(weft.load(tmp_path / f"{name}.weft"), logged())
    assert sorted(os.listdir(tmp_path)) == ["a.weft", "b.weft"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
@pytest.mark.parametrize("call", ["pwrite", "link", "fchmod"])
@pytest.mark.parametrize("make", [logged, symmetric, lambda: ring(4), None])
def test_nothing_is_left_of_what_fails(make, call, error, tmp_path, monkeypatch):
    algorithm = unnamed(logged(), tmp_path)[0] if make is None else make()
    (tmp_path / "a.weft").write_text("old")
    honest, calls = getattr(os, call), []

    def fail(*args, **more):
        calls.append(1)
        if len(calls) > 2 or call != "pwrite":
            raise error
        return honest(*args, **more)

    monkeypatch.setattr(os, call, fail)
    expected = KeyboardInterrupt if error is KeyboardInterrupt else FormatError
    with pytest.raises(expected):
        write(algorithm, tmp_path / "a.weft")
    assert os.listdir(tmp_path) == ["a.weft"]
    assert (tmp_path / "a.weft").read_text() == "old"


@pytest.mark.parametrize("algorithm", [ring(3), logged(3), symmetric(3)])
def test_every_cut_is_noticed(algorithm, tmp_path):
    path = tmp_path / "a.weft"
    write(algorithm, path)
    content = path.read_bytes()
    for size in {*range(0, len(content), 7), len(content) - 1}:
        path.write_bytes(content[:size])
        with pytest.raises(FormatError, match=r"a\.weft: is (no compact store|cut short)"):
            weft.load(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(FormatError, match="cut short or damaged"):
        weft.load(path)


def same(a, b) -> None:
    (assert_same_compact if a.rows.compact else assert_same)(a, b)


@pytest.mark.parametrize("algorithm", [told(), with_places(), logged(4), symmetric(4)])
@given(seed=st.integers(0, 2**32))
def test_changed_bytes_are_noticed_or_change_nothing(algorithm, seed):
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.weft"
        store.write(algorithm, path)
        content = bytearray(path.read_bytes())
        log = (
            range(64, 64 + algorithm.rows.log.nbytes)
            if isinstance(algorithm.rows, RoundLog)
            else ()
        )
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(content)))
            if at not in log:
                content[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(content))
        with suppress(FormatError):
            same(weft.load(path), algorithm)


def _set(**changes):
    return lambda directory: directory.update(changes)


def _entry(name, **changes):
    def change(directory):
        next(e for e in directory["arrays"] if e["name"] == name).update(changes)

    return change


def _drop(name):
    def change(directory):
        directory["arrays"] = [e for e in directory["arrays"] if e["name"] != name]

    return change


def _network(**changes):
    return lambda directory: directory["topology"].update(changes)


def _demand(**changes):
    return lambda directory: directory["demands"][0].update(changes)


CASES = {
    "kind": (_set(rows="riddles"), "rows of the kind riddles, which this Weft does not know"),
    "no kind": (lambda d: {k: v for k, v in d.items() if k != "rows"}, "makes no sense"),
    "list": (lambda _: [1], "makes no sense"),
    "deep": (lambda d: d.update(provenance={"a": [[1]]}), "makes no sense"),
    "huge": (_entry("offsets", length=10**17), "the array offsets of .* bytes does not fit"),
    "negative": (_entry("offsets", length=-1), "unknown type or length"),
    "place": (_entry("offsets", place=1 << 62), "does not fit"),
    "crooked": (_entry("offsets", place=65), "does not fit"),
    "type": (_entry("offsets", type="float128"), "unknown type"),
    "other type": (_entry("log", type="int32", length=1), "log is of int32; expected uint8"),
    "unchecked": (_entry("offsets", checksum=None), "offsets has no checksum"),
    "missing": (_drop("offsets"), "the array offsets is missing"),
    "no groups": (_drop("groups"), "the array groups is missing"),
    "twice": (lambda d: d["arrays"].append(d["arrays"][0]), "the array log is there twice"),
    "short log": (_entry("log", length=8), "the offsets of the rounds do not fit the log"),
    "slot": (_set(numbers={"slot": 0, "count": 20}), "slot is 0; expected 1 to"),
    "late": (_set(numbers={"slot": 1 << 61, "count": 20}), "slot is .*; expected 1 to"),
    "no count": (_set(numbers={"slot": 5}), "count is None"),
    "count": (_set(numbers={"slot": 5, "count": 10**15}), "count is 10*; expected 0 to"),
    "npus": (_network(npus=1 << 40), "NPUs and [0-9]+ switches make no sense"),
    "switches": (_network(switches=1), "a log of rounds is for networks without switches"),
    "no network": (_set(topology=None), "compact rows need a topology"),
    "no cost": (_set(cost=None), "compact rows need a topology, a cost model"),
    "grid": (_network(dimensions=[]), "said to translate onto itself cannot do so"),
    "chunks": (_demand(chunks_per_share=1 << 24), "make no sense"),
    "collective": (_demand(kind="all-to-all"), "such rows cannot be those of this all-to-all"),
    "whole": (_set(whole={"name": "x", "npus": 5, "switches": 0, "removed": []}), "missing"),
}


def test_one_npus_rows_do_not_claim_all_memory(tmp_path):
    algorithm = symmetric()
    write(algorithm, tmp_path / "a.weft")
    pieces = (1 << 20) // algorithm.demands[0].ranks + 1
    rewrite(tmp_path / "a.weft", _demand(chunks_per_share=pieces))
    with pytest.raises(FormatError, match="make no sense"):
        weft.load(tmp_path / "a.weft")


@pytest.mark.parametrize("case", CASES)
def test_a_directory_that_lies_is_refused(case, tmp_path):
    change, message = CASES[case]
    write(logged(), tmp_path / "a.weft")
    rewrite(tmp_path / "a.weft", change)
    with pytest.raises(FormatError, match=message) as caught:
        weft.load(tmp_path / "a.weft")
    assert str(caught.value).startswith(f"{tmp_path / 'a.weft'}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"chunk": np.array([0, 1, 0], np.int32)}, r"chunk\[1\] is 1; expected 0 to 0"),
        ({"dst": np.array([1, 2, 4], np.int32)}, r"dst\[2\] is 4; expected 0 to 3"),
        ({"src": np.array([0, 1], np.int32)}, "differ in length"),
        ({"start": np.array([0, 9, 5], np.int64)}, "not in the order of their starts"),
        ({"start": np.array([-1, 9, 9], np.int64)}, r"start\[0\] is -1"),
    ],
)
def test_symmetric_rows_out_of_range_are_refused(column, message, tmp_path):
    algorithm = symmetric(4)
    write(replace(algorithm, rows=replace(algorithm.rows, **column)), tmp_path / "a.weft")
    with pytest.raises(FormatError, match=message):
        weft.load(tmp_path / "a.weft")


def repaired(kind: str) -> Algorithm:
    broken = network("torus:4x4").without(links=[(0, 1), (1, 0)])
    demand = Collective.of(kind, range(16), 16000)
    found = plan_repaired(Problem.of(broken, demand, CostModel("blocking")))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chunk": 256}, r"chunk\[0\] is 256; expected 0 to"),
        ({"link": -1}, r"link\[0\] is -1"),
        ({"start": -1}, r"start\[0\] is -1"),
        ({"count": 10**6}, "count is 1000000; expected 0 to"),
        ({}, "repaired rows are for all NPUs that are left"),
    ],
)
@pytest.mark.parametrize("kind", ["all-reduce", "all-to-all"])
def test_repaired_rows_come_back_or_are_refused(kind, change, message, tmp_path):
    algorithm = repaired(kind)
    assert isinstance(algorithm.rows, RepairedExchange if kind == "all-to-all" else RepairedRows)
    write(algorithm, tmp_path / "a.weft")
    loaded = weft.load(tmp_path / "a.weft")
    assert_same(loaded, algorithm)
    assert len(loaded) == len(algorithm)
    assert loaded.time == algorithm.time
    rows = algorithm.rows
    for name, value in change.items():
        if name == "count":
            rows = replace(rows, count=value)
            continue
        column = getattr(rows, name).copy()
        column[0] = value
        rows = replace(rows, **{name: column})
    topology = algorithm.topology if change else replace(algorithm.topology, whole=None)
    write(replace(algorithm, rows=rows).on(topology), tmp_path / "a.weft")
    with pytest.raises(FormatError, match=message):
        weft.load(tmp_path / "a.weft")


def trees() -> Algorithm:
    """Two trees that carry two chunks each round a ring of two."""
    rows = PeriodicRows(
        5 * 10**9,
        np.array([0, 1, 2]),
        np.array([0, 2, 4]),
        np.array([0, 1, 1, 0], np.int32),
        np.array([True, False, True, False]),
        np.array([0, 10**9] * 2),
    )
    demand = Collective.of("all-reduce", range(2), 2000)
    return Algorithm((demand,), rows, Timing(network("ring:2"), CostModel()))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"link": np.array([0, 1, 1, 9], np.int32)}, r"link\[3\] is 9"),
        ({"first": np.array([0, 3, 2])}, "first does not go from 0 to 2"),
        ({"offsets": np.array([0, 2, 5])}, "offsets does not go from 0 to 4"),
        ({"offsets": np.array([0, 4])}, "the trees do not fit"),
        ({"period": 1 << 62}, "period is"),
        ({"start": np.array([0])}, "differ in length"),
    ],
)
def test_periodic_rows_come_back_or_are_refused(column, message, tmp_path):
    algorithm = trees()
    write(algorithm, tmp_path / "a.weft")
    assert_same_compact(weft.load(tmp_path / "a.weft"), algorithm)
    write(replace(algorithm, rows=replace(algorithm.rows, **column)), tmp_path / "a.weft")
    with pytest.raises(FormatError, match=message):
        weft.load(tmp_path / "a.weft")


def test_a_table_that_makes_no_sense_is_not_written(tmp_path):
    algorithm = ring(3)
    dst = algorithm.transfers.dst.copy()
    dst[1] = 3
    algorithm = replace(algorithm, rows=replace(algorithm.transfers, dst=dst))
    with pytest.raises(InputError, match="row 1: destination NPU 3 is out of range"):
        write(algorithm, tmp_path / "a.weft")
    assert os.listdir(tmp_path) == []


def test_other_files_and_versions(tmp_path):
    path = tmp_path / "a.weft"
    path.write_text("no store at all" * 10)
    with pytest.raises(FormatError, match="is no compact store"):
        weft.load(path)
    write(logged(), path)
    content = bytearray(path.read_bytes())
    content[8] = 9
    path.write_bytes(content)
    with pytest.raises(FormatError, match="version 9 of the compact store; this Weft reads 1"):
        weft.load(path)
    with pytest.raises(FormatError, match="No such file"):
        weft.load(tmp_path / "none.weft")


def test_what_is_said_of_a_store_must_fit(tmp_path):
    write(logged(), tmp_path / "a.weft")
    assert read(tmp_path / "a.weft", Hints("all-gather")).algorithm.demands
    with pytest.raises(InputError, match="says otherwise by itself than --collective"):
        read(tmp_path / "a.weft", Hints("all-reduce"))


@pytest.mark.parametrize(
    ("kind", "old"), [("all-gather", "mended"), ("all-to-all", "mended-exchange")]
)
def test_names_of_the_first_release_are_read(kind, old, tmp_path):
    algorithm = repaired(kind)
    write(algorithm, tmp_path / "a.weft")
    rewrite(tmp_path / "a.weft", lambda directory: {**directory, "rows": old})
    assert_same(weft.load(tmp_path / "a.weft"), algorithm)
