"""Compact stores whose checksums fit but that make no sense: one sentence, whatever is wrong."""

from __future__ import annotations

import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chakra_samples import star, told, with_places
from compact_samples import levels, logged, spread, symmetric
from test_store import _demand, _entry, directory_of, repaired, rewrite, trees

import weft
from weft.algorithm import Activity, Algorithm, Transfers
from weft.collective import Collective
from weft.errors import FormatError, InputError, WeftError
from weft.formats import Hints, read, write
from weft.formats.header import LINK_COLUMNS
from weft.judge import verify


def _typed(path: Path, name: str, kind: str, length: int) -> None:
    """Say that an array is of another type and length, with a checksum that fits."""
    content = path.read_bytes()
    (entry,) = (one for one in directory_of(path)["arrays"] if one["name"] == name)
    raw = content[entry["place"] :][: length * np.dtype(kind).itemsize]
    fits = None if entry["checksum"] is None else zlib.crc32(raw)
    rewrite(path, _entry(name, type=kind, length=length, checksum=fits))


def used(path: Path) -> None:
    """Do with a store whatever commands do; what is wrong with it must be said as such."""
    with suppress(WeftError):
        algorithm = weft.load(path)
        for use in (
            lambda: verify(algorithm),
            lambda: algorithm.time,
            lambda: algorithm.transfers,
            lambda: Activity.of(algorithm, 0).to_dict(3),
        ):
            with suppress(WeftError):
                use()


MAKERS = [told, with_places, lambda: star(4), lambda: logged(4), lambda: symmetric(4)]
MAKERS += [lambda: repaired("all-reduce"), lambda: repaired("all-to-all"), lambda: trees()]
MAKERS += [lambda: levels(), lambda: spread()]


@pytest.mark.parametrize("make", MAKERS)
def test_arrays_of_any_type_and_length_are_refused_in_a_sentence(make, tmp_path):
    path = tmp_path / "a.weft"
    write(make(), path)
    whole = path.read_bytes()
    for entry in directory_of(path)["arrays"]:
        there = entry["length"] * np.dtype(entry["type"]).itemsize
        for kind in ("bool", "uint8", "uint16", "uint32", "int32", "int64"):
            fits = there // np.dtype(kind).itemsize
            for length in {fits, min(fits, entry["length"]), min(fits, 1), 0}:
                path.write_bytes(whole)
                _typed(path, entry["name"], kind, length)
                used(path)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("value", [-1, 0, 1, 1 << 31, 1 << 80, [], [5], "x", None])
def test_directories_that_say_anything_are_refused_in_a_sentence(make, value, tmp_path):
    path = tmp_path / "a.weft"
    write(make(), path)
    whole, directory = path.read_bytes(), directory_of(path)
    records = [("numbers",), ("topology",), ("demands", 0), ("cost",), ()]
    for record in records:
        names = directory
        for step in record:
            names = names[step]
        for name in names or ():

            def change(there, record=record, name=name):
                for step in record:
                    there = there[step]
                there[name] = value

            path.write_bytes(whole)
            rewrite(path, change)
            used(path)


@pytest.mark.parametrize("name", [*LINK_COLUMNS, "groups", "route_length", "part_bytes"])
def test_truth_values_are_no_numbers(name, tmp_path):
    make = told if name.startswith("part") else lambda: star(4)
    write(make(), tmp_path / "a.weft")
    _typed(tmp_path / "a.weft", name, "bool", 0)
    with pytest.raises(FormatError, match=f"the array {name} is of bool; expected whole numbers"):
        weft.load(tmp_path / "a.weft")


def test_narrow_numbers_do_not_wrap_around(tmp_path):
    """Without a sign every step is upwards, and sets that fall would pass for sets that rise."""
    algorithm, demands = told(), []
    for demand in algorithm.demands:
        if demand.parts is not None:
            sets = np.split(demand.parts.set_members, demand.parts.set_offsets[1:-1])
            falling = np.concatenate([one[::-1] for one in sets]).astype(np.uint8)
            demand = replace(demand, parts=replace(demand.parts, set_members=falling))
        demands.append(demand)
    wrong = replace(algorithm, demands=tuple(demands))
    write(wrong, tmp_path / "a.weft")
    with pytest.raises(FormatError, match="are not NPUs in rising order"):
        weft.load(tmp_path / "a.weft")


def test_a_network_that_only_claims_to_translate():
    algorithm = symmetric(4)
    swapped = algorithm.topology.dst.copy()
    here = np.flatnonzero(algorithm.topology.src == 1)
    swapped[here] = [3, 0]  # no link 1 > 2
    wrong = algorithm.on(replace(algorithm.topology, dst=swapped))
    assert not verify(wrong)
    with pytest.raises(InputError, match="is not vertex-transitive: no hop leads from"):
        wrong.transfers  # noqa: B018


def test_compact_rows_have_no_empty_chunks(tmp_path):
    write(symmetric(4), tmp_path / "a.weft")
    rewrite(tmp_path / "a.weft", _demand(size=3))
    with pytest.raises(FormatError, match="compact rows need chunks that have bytes"):
        weft.load(tmp_path / "a.weft")


@pytest.mark.parametrize("npu", [(1 << 20) - 1, 1 << 20, 2_000_000_000, (1 << 31) - 1])
def test_npus_without_a_network_have_a_limit(npu, tmp_path):
    pair = np.array([0, npu], np.int32)
    rows = Transfers(np.array([0, 1], np.int32), pair, pair[::-1].copy(), np.zeros(2, np.bool_))
    algorithm = Algorithm((Collective.of("all-gather", (0, npu), 8, alignment=1),), rows)
    for name in ("a.weft", "a.json"):
        write(algorithm, tmp_path / name)
        if npu < 1 << 20:
            assert verify(weft.load(tmp_path / name))
        else:
            with pytest.raises(FormatError, match=f"names NPU {npu}, but no network"):
                weft.load(tmp_path / name)
    write(algorithm, tmp_path / "a.csv")
    hints = Hints("all-gather", 8, group=(0, npu))
    if npu < 1 << 20:
        read(tmp_path / "a.csv", hints)
    else:
        with pytest.raises(FormatError, match=f"names NPU {npu}, but no network"):
            read(tmp_path / "a.csv", hints)


def test_the_judge_counts_no_npus_beyond_its_limit():
    far = (1 << 31) - 1
    pair = np.array([0, far], np.int32)
    rows = Transfers(np.array([0, 1], np.int32), pair, pair[::-1].copy(), np.zeros(2, np.bool_))
    verdict = verify(Algorithm((Collective.of("all-gather", (0, far), 8),), rows))
    assert not verdict
    assert f"NPU {far}" in verdict.violation


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0, "is no compact store: it has 0 bytes"),
        (63, "is no compact store: it has 63 bytes"),
        (64, "its first bytes are not those of one"),
        (65, "its first bytes are not those of one"),
    ],
)
def test_a_file_as_long_as_the_head_is_looked_into(size, message, tmp_path):
    (tmp_path / "a.weft").write_bytes(b"x" * size)
    with pytest.raises(FormatError, match=message):
        weft.load(tmp_path / "a.weft")
