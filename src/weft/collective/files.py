"""What moves, from files: a matrix of sizes, a pattern of moves, a plan of several groups.

They are described in ``docs/groups.md``.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from weft.collective.custom import Move
from weft.collective.groups import parse_group
from weft.collective.model import DEFAULT_ALIGNMENT, Collective
from weft.collective.request import Plan, Request, parse_chunks
from weft.documents import Document, PlacedError, Words, convert, placed, read_document
from weft.units import parse_size

if TYPE_CHECKING:
    from weft.topology.model import Topology

T = TypeVar("T")

Quantity = str | int | float
Ranks = int | str | list[int]
Place = tuple[str | int, ...]


class MoveRecord(msgspec.Struct, forbid_unknown_fields=True):
    """One move; ranks as a number, a text such as ``0-3``, or a list."""

    size: Quantity
    sources: Ranks = msgspec.field(name="from")
    destinations: Ranks = msgspec.field(name="to")
    reduce: bool = False


class GroupRecord(msgspec.Struct, forbid_unknown_fields=True):
    """One group of a plan; without `group` all NPUs."""

    collective: str
    group: Ranks | None = None
    size: Quantity | None = None
    chunks: int | str = "auto"
    root: int | None = None
    relay: bool = True
    matrix: list[list[Quantity]] | None = None
    to: Ranks | None = None
    moves: list[MoveRecord] | None = None


_PLAN = Words({"": GroupRecord, "moves": MoveRecord}, {"": "group", "moves": "move"})
_PATTERN = Words({"": MoveRecord}, {"": "move"})


def load_plan(
    path: str | os.PathLike[str], topology: Topology, *, alignment: int = DEFAULT_ALIGNMENT
) -> Plan:
    """Read a plan: a YAML or JSON list of groups, each with its collective."""

    def build(document: Document) -> Plan:
        records = _listed(document, list[GroupRecord], _PLAN, "a plan", "groups")
        made = [_planned(i, record, topology, alignment) for i, record in enumerate(records)]
        return Plan([collective for collective, _ in made], [chunks for _, chunks in made])

    return read_document(path, "plan", build)


def load_pattern(path: str | os.PathLike[str], ranks: int) -> list[Move]:
    """Read a custom pattern for so many ranks: a YAML or JSON list of moves."""

    def build(document: Document) -> list[Move]:
        records = _listed(document, list[MoveRecord], _PATTERN, "a pattern", "moves")
        return _moves(records, ranks, "", ())

    return read_document(path, "pattern", build)


def load_matrix(path: str | os.PathLike[str]) -> NDArray[np.int64]:
    """Read a matrix of sizes: CSV, or a YAML or JSON list of rows; row r is what rank r sends."""

    def build(document: Document) -> NDArray[np.int64]:
        if document.suffix == ".csv":
            return _csv(document.text)
        rows = _listed(document, list[list[Quantity]], Words(items={"": "row"}), "a matrix", "rows")
        return _matrix(rows, "", ())

    return read_document(path, "matrix", build)


def _listed(
    document: Document, kind: type[list[T]], words: Words, name: str, items: str
) -> list[T]:
    plain = document.plain()
    if not isinstance(plain, list) or not plain:
        raise PlacedError(f"is not {name}: expected a list of {items}")
    return convert(plain, kind, words)


def _planned(
    number: int, record: GroupRecord, topology: Topology, alignment: int
) -> tuple[Collective, int | None]:
    name, place = f"group {number}", (number,)
    with placed(name, (*place, "group")):
        whole = topology.members.tolist()
        group = whole if record.group is None else parse_group(record.group, topology.npus)
        topology.check_members(group)
    with placed(name, (*place, "chunks")):
        chunks = parse_chunks(str(record.chunks))
    with placed(name, (*place, "to")):
        to = None if record.to is None else parse_group(record.to, len(group), "rank")
    prefix = f"{name}: "
    matrix = None if record.matrix is None else _matrix(record.matrix, prefix, (*place, "matrix"))
    moves = (
        None
        if record.moves is None
        else _moves(record.moves, len(group), prefix, (*place, "moves"))
    )
    with placed(name, place):
        request = Request(
            record.collective, record.size, record.root, record.relay, matrix, to, moves
        )
        collective = request.among(group, alignment)
    if chunks is not None:
        with placed(name, (*place, "chunks")):
            replace(collective, chunks_per_share=chunks)  # refuses what is out of range
    return collective, chunks


def _moves(records: Sequence[MoveRecord], ranks: int, prefix: str, place: Place) -> list[Move]:
    moves = []
    for i, record in enumerate(records):
        name = f"{prefix}move {i}"
        with placed(name, (*place, i, "size")):
            size = parse_size(record.size)
        with placed(name, (*place, i, "from")):
            sources = parse_group(record.sources, ranks, "rank")
        with placed(name, (*place, i, "to")):
            destinations = parse_group(record.destinations, ranks, "rank")
        moves.append(Move(size, sources, destinations, record.reduce))
    return moves


def _csv(text: str) -> NDArray[np.int64]:
    """Rows of sizes; blank lines mean nothing."""
    reader = csv.reader(io.StringIO(text, newline=""))
    rows, lines = [], []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(cells)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise PlacedError(f"not valid CSV: {error}", line=reader.line_num) from None
    if not rows:
        raise PlacedError("is not a matrix: expected rows of sizes")
    try:
        return _matrix(rows, "", ())
    except PlacedError as fault:
        row = fault.path[0]
        assert isinstance(row, int)
        raise PlacedError(fault.message, line=lines[row]) from None


def _matrix(rows: Sequence[Sequence[Quantity]], prefix: str, place: Place) -> NDArray[np.int64]:
    known: dict[Quantity, int] = {}  # large matrices repeat few sizes
    for r, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise PlacedError(
                f"{prefix}row {r} has {len(row)} sizes where row 0 has {len(rows[0])}", (*place, r)
            )
        for entry in row:
            if entry not in known:
                with placed(f"{prefix}row {r}", (*place, r)):
                    known[entry] = parse_size(entry, or_zero=True)
    return np.array([[known[entry] for entry in row] for row in rows], dtype=np.int64)
