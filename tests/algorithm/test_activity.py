"""What one NPU does, held against the whole table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import weft
from weft.algorithm import Activity, Algorithm, CompactRows, Transfers, described
from weft.errors import InputError
from weft.topology import load_topology

CASES = [
    ("mesh:3x3", "all-gather"),
    ("torus:4x4", "all-gather"),
    ("torus:3x4", "all-to-all"),
    ("switch:4", "all-reduce"),
    ("ring:3*switch:2", "all-gather"),
]


@pytest.mark.parametrize(("spec", "kind"), CASES)
def test_rows_and_totals(spec, kind):
    algorithm = weft.synthesize(spec, kind, "1MB", chunks=2).algorithm
    rows, topology = algorithm.transfers, algorithm.topology
    sizes = algorithm.chunks.bytes[rows.chunk]
    for npu in (0, topology.npus - 1):
        activity = Activity.of(algorithm, npu)
        facts = activity.to_dict(limit=10**6)
        mine = (rows.src == npu) | (rows.dst == npu)
        assert len(activity) == len(facts["listed"]) == mine.sum()
        assert facts["more"] == 0
        assert facts["sent_bytes"] == sizes[rows.src == npu].sum()
        assert facts["received_bytes"] == sizes[rows.dst == npu].sum()
        assert (np.diff(activity.rows.start) >= 0).all()
        named = ("start_us", "chunk", "what", "peer")
        listed = {tuple(row[name] for name in named) for row in facts["listed"]}
        assert len(listed) == mine.sum()
        links = {topology.link_name(link) for link in range(topology.links)}
        carried: dict[str, int] = {}
        for row in facts["listed"]:
            assert row["link_name"] in links
            assert str(npu) in row["link_name"].split(" > ")
            carried[row["link_name"]] = carried.get(row["link_name"], 0) + row["bytes"]
        assert facts["busiest_link_bytes"] == max(carried.values())
        assert carried[facts["busiest_link"]] == max(carried.values())


def test_compact_rows_are_not_expanded(tmp_path, monkeypatch):
    weft.synthesize("torus:4x4", "all-gather", "1MB", chunks=1).save(tmp_path / "a.weft")
    algorithm = weft.load(tmp_path / "a.weft")
    assert isinstance(algorithm.rows, CompactRows)
    monkeypatch.setattr(type(algorithm.rows), "table", None)
    assert len(Activity.of(algorithm, 3)) == 30
    assert described(algorithm)["transfers"] == 240


@pytest.mark.parametrize("kind", ["all-gather", "all-to-all"])
def test_mended_rows_are_not_expanded(kind, monkeypatch):
    network = load_topology("torus:4x4", without_links=["0-1"])
    algorithm = weft.synthesize(network, kind, "1MB", chunks=1, method="symmetric").algorithm
    sends = int((algorithm.transfers.src == 3).sum())
    monkeypatch.setattr(type(algorithm.rows), "table", None)
    algorithm = replace(algorithm)  # with no table made yet
    assert int(Activity.of(algorithm, 3).sends.sum()) == sends
    rows = described(algorithm)["rows"]
    assert rows["patch_rows"] == len(algorithm.rows.chunk)


def test_untimed_rows_have_no_link():
    timed = weft.synthesize("ring:4", "all-gather", "1MB", chunks=1).algorithm
    columns = timed.transfers.columns()
    rows = Transfers(*(columns[name] for name in ("chunk", "src", "dst", "reduce")))
    activity = Activity.of(Algorithm(timed.demands, rows), 2)
    assert activity.busiest is None
    assert activity.row(0)["link_name"] is None
    assert activity.row(0)["start_us"] is None


def test_an_npu_that_is_not_there():
    algorithm = weft.synthesize("ring:4", "all-gather", "1MB").algorithm
    with pytest.raises(InputError, match="ring:4 has no NPU 4; its NPUs are 0 to 3"):
        Activity.of(algorithm, 4)
