"""Ways to break an algorithm: each returns a changed copy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.algorithm import Algorithm, Transfers


def with_columns(algorithm: Algorithm, **columns: object) -> Algorithm:
    return replace(algorithm, rows=replace(algorithm.transfers, **columns))


def change(algorithm: Algorithm, row: int, **values: int) -> Algorithm:
    """Other values in one row; ``shift`` moves both its start and its end, in ps."""
    shift = values.pop("shift", 0)
    if shift:
        values["start"] = int(algorithm.transfers.start[row]) + shift
        values["end"] = int(algorithm.transfers.end[row]) + shift
    columns = {name: getattr(algorithm.transfers, name).copy() for name in values}
    for name, value in values.items():
        columns[name][row] = value
    return with_columns(algorithm, **columns)


def pick(algorithm: Algorithm, rows: list[int]) -> Algorithm:
    """Only these rows, in this order; without dependencies."""
    columns = algorithm.transfers.columns()
    kept = {n: c[rows] for n, c in columns.items() if n not in ("deps", "dep_offsets")}
    return replace(algorithm, rows=Transfers(**kept))


def drop(algorithm: Algorithm, row: int) -> Algorithm:
    return pick(algorithm, [r for r in range(len(algorithm.transfers)) if r != row])


def swap(algorithm: Algorithm, one: int, two: int) -> Algorithm:
    """The same rows in another order; times stay with their rows."""
    rows = list(range(len(algorithm.transfers)))
    rows[one], rows[two] = two, one
    return pick(algorithm, rows)


def repeat_at_end(algorithm: Algorithm, row: int) -> Algorithm:
    """The row once more, after all others."""
    rows = len(algorithm.transfers)
    longer = pick(algorithm, [*range(rows), row])
    return change(longer, rows, shift=algorithm.time - int(algorithm.transfers.start[row]))


def with_dep(algorithm: Algorithm, row: int, dep: int) -> Algorithm:
    """One dependency: `row` waits for `dep`."""
    offsets = (np.arange(len(algorithm.transfers) + 1) > row).astype(np.int64)
    return with_columns(algorithm, dep_offsets=offsets, deps=np.array([dep], dtype=np.int64))
