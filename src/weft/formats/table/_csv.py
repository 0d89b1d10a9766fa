"""The rows of an algorithm as CSV, for people and spreadsheets; the user names the collective."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, Transfers
from weft.documents import Document, PlacedError, new_file, placed, read_document
from weft.errors import InputError
from weft.formats.imported import Hints, Imported
from weft.formats.limits import check_npu_numbers, chunk_total, count_limit
from weft.formats.table._json import named_columns
from weft.quoting import quoted
from weft.ragged import offsets_of

MOST_BYTES = 4 << 30
NEEDED = ("chunk", "src", "dst", "reduce")
# Columns that are written if they are there; deps are numbers with spaces between them.
OTHERS = ("route", "start_ps", "end_ps", "src_place", "dst_place", "deps")
# Without a network times mean nothing: they are for people.
UNREAD = ("route", "start_ps", "end_ps")
_TRUTH = {"0": False, "1": True, "false": False, "true": True, "False": False, "True": True}


def recognise_csv(path: Path, head: bytes) -> bool:
    """Whether the first line has the names of the columns."""
    names = head.split(b"\n", 1)[0].removeprefix(b"\xef\xbb\xbf").split(b",")
    there = {name.strip().strip(b'"') for name in names}
    return {b"chunk", b"src", b"dst"} <= there or path.suffix.lower() == ".csv"


def write_csv(algorithm: Algorithm, path: Path) -> None:
    """Write the rows; the file appears whole or not at all."""
    if len(algorithm.demands) > 1:
        raise InputError(
            f"a CSV table has the chunks of one collective, not of {len(algorithm.demands)}; "
            "write JSON instead"
        )
    rows = algorithm.transfers
    columns = named_columns(rows)
    columns["reduce"] = rows.reduce.astype(int).tolist()
    if "deps" in columns:
        deps, marks = columns["deps"], columns.pop("dep_offsets")
        columns["deps"] = [" ".join(map(str, deps[a:b])) for a, b in pairwise(marks)]
    lines = [",".join(columns)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    new_file(path, ("\n".join(lines) + "\n").encode())


def read_csv(path: Path, hints: Hints) -> Imported:
    """Read rows; `hints` say of which collective."""

    def build(document: Document) -> tuple[Algorithm, list[int]]:
        columns, lines = _columns(document.text)
        transfers = _transfers(columns, lines)
        npus = 1 + max(int(transfers.src.max(initial=0)), int(transfers.dst.max(initial=0)))
        with placed("the table", ()):
            _check_claims(hints, npus, len(document.data))
            algorithm = Algorithm((hints.demand(npus),), transfers)
            check_npu_numbers(algorithm, len(document.data))
            return algorithm, lines

    algorithm, lines = read_document(path, "table", build, MOST_BYTES)
    return Imported(algorithm, path, lambda row: f"line {lines[row]}")


def _check_claims(hints: Hints, npus: int, total_bytes: int) -> None:
    """Raise if the collective would have chunks without end: a row can name any NPU."""
    ranks = npus if hints.group is None else len(hints.group)
    moves = None if hints.moves is None else len(hints.moves)
    claims = chunk_total(hints.collective or "", ranks, moves, hints.chunks or 1)
    if claims > count_limit(total_bytes):
        raise InputError(
            f"among {ranks} NPUs it would have {claims} chunks, far more than the rows move; "
            "say who takes part with --group, or take fewer --chunks"
        )


def _columns(text: str) -> tuple[dict[str, Sequence[str]], list[int]]:
    """The cells by column, and the line of each row; blank lines mean nothing."""
    reader = csv.reader(io.StringIO(text, newline=""))
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for cells in reader:
            if cells and (len(cells) > 1 or cells[0].strip()):
                rows.append(cells)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise PlacedError(f"not valid CSV: {error}", line=reader.line_num) from None
    names = [name.strip() for name in rows[0]] if rows else []
    _check_names(names, lines[0] if lines else 1)
    for cells, line in zip(rows[1:], lines[1:], strict=True):
        if len(cells) != len(names):
            raise PlacedError(f"has {len(cells)} cells; expected {len(names)}", line=line)
    cells_of = zip(*rows[1:], strict=True) if len(rows) > 1 else ((),) * len(names)
    return dict(zip(names, cells_of, strict=True)), lines[1:]


def _check_names(names: list[str], line: int) -> None:
    for name in NEEDED:
        if name not in names:
            raise PlacedError(
                f"is not a table of transfers: no column {name} (expected {', '.join(NEEDED)})",
                line=line,
            )
    for name in names:
        if name not in NEEDED + OTHERS:
            known = ", ".join(NEEDED + OTHERS)
            raise PlacedError(f"unknown column {quoted(name)} (known: {known})", line=line)
        if names.count(name) > 1:
            raise PlacedError(f"column {name} is there twice", line=line)


def _transfers(columns: dict[str, Sequence[str]], lines: list[int]) -> Transfers:
    def numbers(name: str, end: int = 1 << 31) -> NDArray[Any]:
        values = _parsed(columns[name], name, _whole(end), lines)
        return np.array(values, dtype=np.int32 if end == 1 << 31 else np.int64)

    for name in UNREAD:
        if name in columns:
            numbers(name, 1 << 63)
    more: dict[str, Any] = {
        name: numbers(name) for name in ("src_place", "dst_place") if name in columns
    }
    if "deps" in columns:
        deps = _parsed(columns["deps"], "deps", _several, lines)
        more["dep_offsets"] = offsets_of([*map(len, deps)])
        more["deps"] = np.array([row for some in deps for row in some], dtype=np.int64)
    reduce = _parsed(columns["reduce"], "reduce", lambda cell: _TRUTH[cell.strip()], lines)
    return Transfers(
        numbers("chunk"), numbers("src"), numbers("dst"), np.array(reduce, dtype=np.bool_), **more
    )


def _whole(end: int) -> Callable[[str], int]:
    def parse(cell: str) -> int:
        value = int(cell[:40])
        if not 0 <= value < end or len(cell) > 40:
            raise ValueError
        return value

    return parse


def _several(cell: str) -> list[int]:
    return [_whole(1 << 63)(one) for one in cell.split()]


def _parsed(
    cells: Sequence[str], name: str, parse: Callable[[str], Any], lines: list[int]
) -> list[Any]:
    found = []
    for at, cell in enumerate(cells):
        try:
            found.append(parse(cell))
        except (ValueError, KeyError):
            kind = "0 or 1" if name == "reduce" else "a whole number from 0 on"
            raise PlacedError(
                f"{name} is {quoted(cell)}; expected {kind}", line=lines[at]
            ) from None
    return found
