"""Traces of thread-block programs: chunks are counted, and waits say little of the data."""

from __future__ import annotations

import pytest
from tests.cli.command import weft
from trace_programs import CHUNK, PROGRAMS, written

from weft.errors import FormatError, UnclearError
from weft.formats import Hints, read

BOXES = PROGRAMS["all-reduce of boxes"]


@pytest.mark.parametrize("sizes", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_chunks_are_known_by_their_numbers(name, sizes, tmp_path):
    npus, chunks, rows = PROGRAMS[name]
    folder = written(npus, chunks, rows, sizes=sizes).write(tmp_path)
    kind = name.split(" ")[0]
    size = None if sizes else chunks * CHUNK
    root = 0 if kind in ("broadcast", "reduce") else None
    algorithm = read(folder, Hints(kind, size=size, root=root)).verified()
    assert algorithm.demands[0].size == chunks * CHUNK
    assert len(algorithm.transfers) >= len(rows)


def test_a_size_need_not_divide(tmp_path):
    folder = written(*BOXES).write(tmp_path)
    assert read(folder, Hints("all-reduce", size=100_003)).verified().demands[0].size == 100_003


def test_without_sizes_that_of_the_buffer_is_needed(tmp_path):
    folder = written(*BOXES).write(tmp_path)
    with pytest.raises(FormatError, match=r"trace\.0\.et: node 0 has no comm_size.* --size") as bad:
        read(folder, Hints("all-reduce"))
    assert not isinstance(bad.value, UnclearError)


def test_more_chunks_than_there_are(tmp_path):
    trace = written(2, 1, [(0, 0, 1, False)])
    for nodes in trace.nodes:
        nodes[0][3]["msg_chunk_cnt"] = 2
    with pytest.raises(FormatError, match="node 0 moves 2 of 1 chunks; expected 1 to 1"):
        read(trace.write(tmp_path), Hints("broadcast", size=64))


def test_a_wrong_program_is_wrong(tmp_path):
    npus, chunks, rows = PROGRAMS["all-reduce"]
    at = len(rows) - 5
    chunk, *ends = rows[at]
    rows = [*rows[:at], ((chunk + 1) % chunks, *ends), *rows[at + 1 :]]
    folder = written(npus, chunks, rows).write(tmp_path)
    assert read(folder, Hints("all-reduce", size=1 << 20)).violation() is not None


def test_chunks_that_cannot_be_told_apart(tmp_path):
    """What waits say of the data is too much, so what was read is no proof against it."""
    folder = written(*BOXES, sizes=True, labels=False).write(tmp_path / "right")
    with pytest.raises(UnclearError, match=r"cannot tell .* give messages msg_chunk_idx"):
        read(folder, Hints("all-reduce"))
    # Without what goes across, no reading helps.
    npus, chunks, rows = BOXES
    rows = [row for row in rows if row[1] // 4 == row[2] // 4]
    folder = written(npus, chunks, rows, sizes=True, labels=False).write(tmp_path / "wrong")
    assert read(folder, Hints("all-reduce")).violation() is not None


def test_exit_codes(tmp_path):
    """Right, wrong, unreadable, and what cannot be told."""
    npus, chunks, rows = BOXES
    written(*BOXES).write(tmp_path / "right")
    written(npus, chunks, rows[:-1]).write(tmp_path / "wrong")
    written(*BOXES, sizes=True, labels=False).write(tmp_path / "unclear")
    for name, size, code, said in (
        ("right", "8KiB", 0, "right: verified"),
        ("wrong", "8KiB", 1, "wrong: NPU "),
        ("right", None, 2, "weft: right/trace.0.et: node 0 has no comm_size"),
        ("unclear", None, 3, "weft: unclear: cannot tell"),
        ("unclear", "8KiB", 3, "weft: unclear/trace.0.et: the messages sum 1KiB"),
        ("unclear", "1MiB", 2, "weft: unclear/trace.0.et: the messages sum 1KiB"),
    ):
        more = [] if size is None else ["--size", size]
        done = weft("verify", name, "--collective", "all-reduce", *more, cwd=tmp_path)
        assert done.returncode == code, done
        (line,) = (done.stdout + done.stderr).splitlines()
        assert line.startswith(said), line
