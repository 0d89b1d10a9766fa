"""Traces of some NPUs only: those of all may be too many to write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from weft import _core
from weft.algorithm import Algorithm, Transfers, chunk_bytes
from weft.arrays import Int64
from weft.errors import InputError
from weft.formats.chakra._attributes import check_savable, planned
from weft.formats.chakra.schema import TAGS
from weft.formats.limits import standard_columns

# All that nodes of an algorithm have, but for their tags.
_COLUMNS = (
    *("id", "type", "ctrl_offsets", "ctrl", "data_offsets", "data", "start", "duration"),
    *("present", "comm_src", "comm_dst", "comm_size"),
)


def check_ranks(ranks: Sequence[int], npus: int) -> None:
    """Raise unless these are some of so many NPUs."""
    for rank in ranks:
        if not 0 <= rank < npus:
            raise InputError(f"there is no NPU {rank} to write; NPUs are 0 to {npus - 1}")


def nodes_of(
    algorithm: Algorithm, ranks: Sequence[int], npus: int
) -> Iterator[tuple[int, _core.ChakraNodes]]:
    """The nodes of these NPUs: those of a whole trace, but that compact rows are renumbered.

    A row of a table has its own number. Compact rows have none: those of the chosen NPUs are
    counted in order of start, then of route.
    """
    if not algorithm.rows.compact:
        whole = standard_columns(algorithm.transfers)
        check_savable(whole, npus, len(algorithm.chunks), len(algorithm.routes))
        plan = planned(whole, algorithm.chunks.bytes, npus)
        yield from ((rank, plan.nodes(rank)) for rank in ranks)
        return
    tables = [standard_columns(algorithm.of_npu(rank)) for rank in ranks]
    for rank, table, tags in zip(ranks, tables, _tags(tables), strict=True):
        yield rank, _tagged(_nodes(algorithm, table, rank, npus), tags)


def _tags(tables: Sequence[Transfers]) -> list[Int64]:
    """The number of each row of each table; a row that two tables have is the same in both."""
    if not sum(map(len, tables)):
        return [np.zeros(0, dtype=np.int64) for _ in tables]
    # No two transfers start at once on the same route.
    _, moment = np.unique(np.concatenate([table.start for table in tables]), return_inverse=True)
    route = np.concatenate([table.route for table in tables]).astype(np.int64)
    rows, tag = np.unique(moment * (int(route.max()) + 1) + route, return_inverse=True)
    if len(rows) >= TAGS:
        raise InputError(f"{len(rows)} transfers; a trace can number at most {TAGS - 1}")
    return np.split(tag, np.cumsum([len(table) for table in tables])[:-1])


def _nodes(algorithm: Algorithm, table: Transfers, rank: int, npus: int) -> _core.ChakraNodes:
    """The nodes of one NPU; chunks are numbered anew, since there may be too many to list."""
    chunks, named = np.unique(table.chunk, return_inverse=True)
    table = replace(table, chunk=named.astype(np.int32))
    return planned(table, chunk_bytes(algorithm, chunks), npus).nodes(rank)


def _tagged(nodes: _core.ChakraNodes, tags: Int64) -> _core.ChakraNodes:
    """The same nodes with other tags."""
    if not len(tags):
        return nodes
    columns = {name: getattr(nodes, name) for name in _COLUMNS}
    return _core.ChakraNodes(**columns, comm_tag=tags[nodes.comm_tag])
