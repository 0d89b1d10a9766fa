"""The values that tables are for the kernels, and the stub of the core."""

from __future__ import annotations

import ast
import gc
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
from weft import _core
from weft.algorithm import Routes
from weft.collective import Collective
from weft.cost import CostModel
from weft.judge import verify
from weft.topology import load_topology

MOST_ARGUMENTS = 7
ALL_GATHER = Collective.of("all-gather", range(4), 1 << 20, 1)


def test_no_kernel_takes_a_long_list_of_arguments() -> None:
    stub = ast.parse((Path(weft.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))
    kernels = [node for node in stub.body if isinstance(node, ast.FunctionDef)]
    assert len(kernels) > 20
    for kernel in kernels:
        taken = len(kernel.args.args) + len(kernel.args.kwonlyargs)
        assert taken <= MOST_ARGUMENTS, kernel.name


def test_values_keep_their_arrays_and_copy_none() -> None:
    offsets, links = np.arange(5, dtype=np.int64), np.arange(4, dtype=np.int32)
    before = sys.getrefcount(links)
    routes = Routes(offsets, links)
    value = routes.core
    assert routes.core is value
    del routes
    gc.collect()
    assert sys.getrefcount(links) > before
    del value
    gc.collect()
    assert sys.getrefcount(links) == before


def test_values_outlive_what_they_were_made_of() -> None:
    network = load_topology("ring:4")
    algorithm = weft.synthesize(network, ALL_GATHER).algorithm
    routes, rows = Routes.of_links(network.links), algorithm.transfers
    timing = _core.Timing(network.core, CostModel().core, routes.core)
    start, end = rows.start, rows.end
    assert start is not None
    assert end is not None
    del routes, network
    gc.collect()
    again = _core.retime(timing, rows.core, algorithm.chunks.bytes)
    assert np.array_equal(again[0], start)
    assert np.array_equal(again[1], end)


def test_what_changes_in_a_table_changes_its_value() -> None:
    """The judge looks at the columns as they are, not as they were when it first looked."""
    algorithm = weft.synthesize("ring:4", ALL_GATHER).algorithm
    assert verify(algorithm)
    start = algorithm.transfers.start
    assert start is not None
    if not start.flags.writeable:
        pytest.skip("columns cannot be changed")
    start[0] += 1
    assert not verify(algorithm)


def test_times_need_a_network() -> None:
    algorithm = weft.synthesize("ring:4", ALL_GATHER).algorithm
    with pytest.raises(ValueError, match="need a network"):
        _core.judge(
            npus=4, rows=algorithm.transfers.core, chunks=algorithm.chunks.core, timing=None
        )


def test_results_keep_what_they_are_columns_of() -> None:
    network, chunks = load_topology("ring:4"), ALL_GATHER.chunks
    search = _core.Search(seed=0, goal=0, threads=1, progress=_core.Progress())
    planned = _core.match(network.core, CostModel().core, chunks.core, search)
    chunk, rows = planned.chunk, planned.chunk.tolist()
    del planned
    gc.collect()
    assert chunk.tolist() == rows
    assert not chunk.flags.writeable
