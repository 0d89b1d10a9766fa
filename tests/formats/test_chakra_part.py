"""Traces of some NPUs only are those of a whole export, but for their tags."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from chakra_samples import ring, star, with_places

import weft
from weft.algorithm import Algorithm, CompactRows
from weft.errors import FormatError, InputError
from weft.formats import chakra, read, write

COLUMNS = ("id", "type", "ctrl_offsets", "ctrl", "data_offsets", "data", "duration", "present")
MESSAGES = ("comm_src", "comm_dst", "comm_size")
SEND, RECV = 5, 6


def exported(algorithm: Algorithm, ranks: list[int], folder: Path):
    """The nodes of a whole export and of a partial one, of each of these ranks."""
    chakra.save(algorithm, folder / "whole")
    write(algorithm, folder / "part", kind="chakra", options={"ranks": ranks})
    assert len(list((folder / "part").iterdir())) == len(ranks)
    whole, part = (chakra.TraceFiles(folder / name) for name in ("whole", "part"))
    return [(whole.read(rank)[1], part.read(rank)[1]) for rank in ranks]


@pytest.mark.parametrize(
    "make",
    [
        lambda: ring(5, reduce=True),
        lambda: star(5),
        with_places,
        lambda: weft.synthesize("torus:4x4", "all-gather", "1MB", chunks=1).algorithm,
        lambda: weft.synthesize("torus:3x3", "all-reduce", "1MB", chunks=1).algorithm,
        lambda: weft.synthesize("ring:3*switch:2", "all-to-all", "1MB", chunks=1).algorithm,
    ],
)
def test_nodes_are_those_of_a_whole_export(make, tmp_path):
    algorithm = make()
    ranks = [3, 0, 1]
    tags: dict[int, set[tuple[int, int]]] = {}
    for rank, (whole, part) in zip(ranks, exported(algorithm, ranks, tmp_path), strict=True):
        for name in (*COLUMNS, *MESSAGES):
            assert np.array_equal(getattr(whole, name), getattr(part, name)), name
        for kind in (SEND, RECV):
            these = part.type == kind
            assert len(np.unique(part.comm_tag[these])) == these.sum()
            for old, new in zip(whole.comm_tag[these], part.comm_tag[these], strict=True):
                tags.setdefault(int(new), set()).add((int(old), rank))
    # A tag stands for one row, on both ends if both are there.
    assert all(len({old for old, _ in ends}) == 1 for ends in tags.values())
    assert sorted(tags) == list(range(len(tags))) or not isinstance(algorithm.rows, CompactRows)


def test_a_part_cannot_be_read_back(tmp_path):
    chakra.save(ring(4), tmp_path / "part", ranks=[2, 3])
    with pytest.raises(FormatError, match="the traces of NPUs 2,3 of 4 only, which are no whole"):
        read(tmp_path / "part")
    chakra.save(ring(4), tmp_path / "part")  # it may be replaced
    assert len(read(tmp_path / "part").algorithm) == 12


def test_ranks_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="there is no NPU 4 to write; NPUs are 0 to 3"):
        chakra.save(ring(4), tmp_path / "part", ranks=[0, 4])
    assert list(tmp_path.iterdir()) == []
