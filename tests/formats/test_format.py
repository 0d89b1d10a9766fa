"""The table of formats: one of one's own in it, and the one rule for suffixes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chakra_samples import ring

import weft
from weft.formats import FORMATS, Hints, format_for, read, write

OWN = """
from pathlib import Path

import numpy as np

from weft.algorithm import Algorithm, Transfers
from weft.formats import FORMATS, Format, Hints, Imported, Option


def write_edges(algorithm: Algorithm, path: Path, *, comment: str = "edges") -> None:
    rows = algorithm.transfers
    columns = np.column_stack([rows.chunk, rows.src, rows.dst, rows.reduce])
    np.savetxt(path, columns, fmt="%d", header=comment)


def read_edges(path: Path, hints: Hints) -> Imported:
    chunk, src, dst, reduce = np.loadtxt(path, dtype=np.int32, ndmin=2).T.copy()
    demand = hints.demand(npus=1 + int(max(src.max(), dst.max())))
    return Imported(Algorithm((demand,), Transfers(chunk, src, dst, reduce.astype(bool))), path)


EDGES = Format(
    "edges",
    "a list of edges",
    recognise=lambda path, head: path.suffix == ".edges",
    read=read_edges,
    write=write_edges,
    suffix=".edges",
    options={"comment": Option("its first line")},
    hints=("collective", "size", "chunks", "group", "root"),
)
FORMATS.add(EDGES.name, EDGES)
"""


@pytest.fixture
def own() -> Iterator[None]:
    exec(OWN, {})
    yield
    FORMATS.remove("edges")


@pytest.mark.usefixtures("own")
def test_a_format_of_ones_own(tmp_path: Path) -> None:
    result = weft.synthesize("ring:4", "all-gather", "4KiB", chunks=1)
    path = tmp_path / "a.edges"
    assert result.save(path) == "edges"
    found = read(path, Hints("all-gather", 4096)).verified()
    assert found.transfers.chunk.tolist() == result.transfers.chunk.tolist()
    again = weft.synthesize("ring:4", "all-gather", "4KiB", method=str(path))
    assert again.verified
    write(found, path, options={"comment": "mine"})
    assert path.read_text().startswith("# mine")
    with pytest.raises(weft.InputError, match=r"edges takes no --title .it takes --comment."):
        write(found, path, options={"title": "mine"})
    with pytest.raises(weft.InputError, match=r"known: .edges, .weft, .xml, .json, .csv, none"):
        write(found, tmp_path / "a.vertices")


def test_its_options_are_flags(tmp_path: Path) -> None:
    weft.synthesize("ring:4", "all-gather", "4KiB", chunks=1).save(tmp_path / "a.weft")
    arguments = ["convert", "a.weft", "a.edges", "--comment", "mine"]
    code = f"{OWN}\nimport sys\nsys.argv[1:] = {arguments}\nfrom weft.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.edges").read_text().startswith("# mine")


SUFFIXES = {"": "chakra", ".weft": "weft", ".xml": "msccl", ".json": "table", ".csv": "csv"}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("change", [str.lower, str.upper, str.title])
def test_suffixes_name_formats_in_any_case(suffix, change, tmp_path: Path) -> None:
    result = weft.synthesize("ring:4", "all-gather", "4KiB", chunks=1)
    path = tmp_path / f"a{change(suffix)}"
    assert result.save(path) == write(result.algorithm, path) == SUFFIXES[suffix]
    assert path.is_dir() == (suffix == "")
    assert weft.formats.recognise(path) == SUFFIXES[suffix]


@pytest.mark.parametrize("name", ["a.doc", "a.et", "a.weft.gz", "v1.2", ".a.b"])
def test_unknown_suffixes_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(weft.FormatError, match=r"known: .weft, .xml, .json, .csv, none for a f"):
        write(ring(3), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    assert write(ring(3), tmp_path / name, kind="chakra") == "chakra"


def test_a_shared_suffix_is_explained(tmp_path: Path) -> None:
    table = format_for(tmp_path / "plan.json")
    assert table.described("plan.json") == (
        "plan.json is a table of transfers as JSON; weft convert --to mscclpp writes an MSCCL++ "
        "execution plan as JSON"
    )
    assert write(ring(3), tmp_path / "plan.json", kind="mscclpp") == "mscclpp"
    assert weft.formats.recognise(tmp_path / "plan.json") == "mscclpp"


def test_every_format_stands_under_its_own_name() -> None:
    assert [kind.name for kind in FORMATS.values()] == list(FORMATS)
    assert list(FORMATS)[-1] == "table"
