"""The command on bad input: one sentence, exit code 2, nothing half-written, no traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import weft as package
from tests.cli.command import refused

SYNTH = ["synth", "ring:4", "all-gather", "--size", "1MiB"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["synth", "mseh:4x4", "all-gather", "--size", "1MiB"], "did you mean 'mesh'"),
        (["synth", "xyz", "all-gather", "--size", "1MiB"], "unknown topology 'xyz'"),
        (["synth", "", "all-gather", "--size", "1MiB"], "empty"),
        (["synth", "mesh:0x4", "all-gather", "--size", "1MiB"], "whole number from 1"),
        (["synth", "mesh:4x", "all-gather", "--size", "1MiB"], "whole number from 1"),
        (["synth", "mesh:99999x99999", "all-gather", "--size", "1MiB"], "NPUs"),
        (["synth", "ring:4", "all-gahter", "--size", "1MiB"], "did you mean 'all-gather'"),
        (["synth", "ring:4", "zzz", "--size", "1MiB"], "unknown collective 'zzz'"),
        (["synth", "ring:4", "all-gather"], "--size"),
        (["synth", "ring:4", "all-gather", "--size", ""], "size"),
        (["synth", "ring:4", "all-gather", "--size", "0"], "size"),
        (["synth", "ring:4", "all-gather", "--size=-1MiB"], "size"),
        (["synth", "ring:4", "all-gather", "--size", "much"], "size"),
        (["synth", "ring:4", "all-gather", "--size", "nan"], "size"),
        (["synth", "ring:4", "all-gather", "--size", "9" * 5000], "size"),
        ([*SYNTH, "--bandwidth=-50GB/s"], "bandwidth"),
        ([*SYNTH, "--bandwidth", "0GB/s"], "bandwidth"),
        ([*SYNTH, "--bandwidth", "nan"], "bandwidth"),
        ([*SYNTH, "--bandwidth", "50"], "unit"),
        ([*SYNTH, "--bandwidth", ""], "bandwidth"),
        ([*SYNTH, "--bandwidth", "1GB/s,2GB/s"], "give one"),
        ([*SYNTH, "--latency=-1us"], "latency"),
        ([*SYNTH, "--latency", "1"], "unit"),
        ([*SYNTH, "--latency", "nanus"], "latency"),
        ([*SYNTH, "--chunks", "0"], "chunks"),
        ([*SYNTH, "--chunks=-1"], "chunks"),
        ([*SYNTH, "--chunks", "1.5"], "chunks"),
        ([*SYNTH, "--chunks", "999999999999"], "chunks"),
        ([*SYNTH, "--chunks", "9" * 5000], "chunks"),
        ([*SYNTH, "--root", "0"], "has no root"),
        (["synth", "ring:4", "broadcast", "--size", "1MiB", "--root", "7"], "root 7"),
        (["synth", "ring:4", "broadcast", "--size", "1MiB", "--root=-1"], "root -1"),
        ([*SYNTH, "--seed=-1"], "seed"),
        ([*SYNTH, "--seed", "9223372036854775808"], "seed"),
        ([*SYNTH, "--trials", "0"], "trials"),
        ([*SYNTH, "--trials", "99999999999"], "trials"),
        ([*SYNTH, "--threads", "0"], "threads"),
        ([*SYNTH, "--threads", "99999999999"], "threads"),
        ([*SYNTH, "--alignment", "0"], "size '0'"),
        ([*SYNTH, "--latency-model", "bloking"], "did you mean 'blocking'"),
        ([*SYNTH, "--switching", "fast"], "unknown switching"),
        ([*SYNTH, "-o", "x" * 300], "too long"),
        ([*SYNTH, "--without-link", "0-2"], "no link 0-2"),
        ([*SYNTH, "--without-link", "x"], "is not one"),
        ([*SYNTH, "--without-npu", "9"], "no NPU 9"),
        ([*SYNTH, "--without-npu", "x"], "x"),
        ([*SYNTH, "--without-switch", "s0"], "no switch 's0'"),
        (["topo", "show", "switch:3", "--without-switch", "s1"], "switches are s0 to s0"),
        ([*SYNTH, "--without-link", "0-1", "--without-link", "2-3"], "cannot get"),
        (["synth", "line:3", "all-reduce", "--size", "9kB", "--without-link", "0>1"], "cannot get"),
        (["synth", "line:3", "all-reduce", "--size", "9kB", "--without-npu", "1"], "cannot get"),
        (["synth", "no/such.yaml", "all-gather", "--size", "1MiB"], "no such file"),
        (["synth", "gone.yaml", "all-gather", "--size", "1MiB"], "no such file"),
        (["topo", "show", "mseh:4x4"], "did you mean 'mesh'"),
        (["topo", "show", "gone.json"], "no such file"),
        (["verify", "no/such/folder"], "no/such/folder"),
        (["snyth"], "snyth"),
        ([*SYNTH, "--sizes", "4"], "--sizes"),
        ([*SYNTH, "extra"], "extra"),
    ],
)
def test_refused(args: list[str], message: str, tmp_path: Path) -> None:
    assert message in refused(*args, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.yaml", b""),
        ("empty.json", b""),
        ("truncated.json", b'{"npus": 4, "links": [{"from": 0,'),
        ("truncated.yaml", b"npus: 4\nlinks:\n  - {from: 0, to"),
        ("binary.yaml", bytes(range(256))),
        ("binary.json", b"\x00\xff\xfe" * 100),
        ("other.yaml", b"hello: world\n"),
        ("list.json", b"[1, 2, 3]"),
        ("number.yaml", b"42\n"),
        ("bomb.yaml", b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"),
        ("deep.json", b"[" * 100_000),
        ("deep.yaml", b"[" * 5_000),
        ("program.yaml", b"!!python/object/apply:os.system ['true']\n"),
    ],
)
def test_files_that_are_no_networks(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert name in refused("synth", name, "all-gather", "--size", "1kB", cwd=tmp_path)
    assert name in refused("topo", "show", name, cwd=tmp_path)


def test_a_folder_given_as_a_network(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").mkdir()
    assert "net.yaml" in refused("synth", "net.yaml", "all-gather", "--size", "1kB", cwd=tmp_path)
    assert "net.yaml" in refused("topo", "show", "ring:4", "-o", "net.yaml", cwd=tmp_path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("saved") / "out"
    package.synthesize("ring:4", "all-reduce", 4096).save(folder)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(
    "damage", ["truncated", "empty", "missing", "binary", "swapped", "stranger", "no traces"]
)
def test_damaged_folders(damage: str, saved: dict[str, bytes], tmp_path: Path) -> None:
    files = dict(saved)
    first, second = list(files)[:2]
    if damage == "truncated":
        files[first] = files[first][: len(files[first]) // 2]
    elif damage == "empty":
        files[second] = b""
    elif damage == "missing":
        del files[second]
    elif damage == "binary":
        files[second] = bytes(range(256)) * 20
    elif damage == "swapped":
        files[first], files[second] = files[second], files[first]
    elif damage == "stranger":
        files = {"notes.txt": b"hello"}
    else:
        files = {}
    folder = tmp_path / "out"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    refused("verify", str(folder))
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)


def test_a_file_given_as_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    assert "file" in refused("verify", str(file))
    assert "it is a file" in refused(*SYNTH, "-o", str(file))
    assert file.read_text() == "precious"


def test_output_that_is_not_ours(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "thesis.tex").write_text("precious")
    assert "thesis.tex" in refused(*SYNTH, "-o", str(folder))
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_output_without_a_parent(tmp_path: Path) -> None:
    assert "no folder" in refused(*SYNTH, "-o", str(tmp_path / "a" / "b"))
    assert "cannot write" in refused(*SYNTH, "-o", "/proc/weft-out")
    refused("topo", "show", "ring:4", "-o", str(tmp_path / "a" / "net.yaml"))
    refused("topo", "show", "ring:4", "-o", str(tmp_path / "net.txt"))
    refused(*SYNTH, "-o", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_output_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "cannot write" in refused(*SYNTH, "-o", str(tmp_path / "out"))


def test_a_wrong_output_is_said_before_the_work(tmp_path: Path) -> None:
    """Such a synthesis would take minutes."""
    (tmp_path / "other").write_text("x")
    args = ["synth", "mesh:100x100", "all-gather", "--size", "1GiB", "--chunks", "9"]
    assert "other" in refused(*args, "-o", str(tmp_path))
