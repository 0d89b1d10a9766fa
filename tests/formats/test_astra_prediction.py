"""What ASTRA-sim will take is known when a bundle is written, and decides its form."""

from __future__ import annotations

import pytest
from astra_data import run_with_data
from astra_model import run_bundle

import weft
from weft.algorithm import Transfers
from weft.export.astra_sim import export
from weft.topology import load_topology


def made(spec, kind, size="1MiB", bandwidth="50GiB/s", latency="0.5us", **more):
    network = load_topology(spec, bandwidth, latency)
    return weft.synthesize(network, kind, size, **{"chunks": 2, "threads": 1} | more).algorithm


@pytest.mark.parametrize(
    ("spec", "kind", "more"),
    [
        ("ring:5", "all-reduce", {}),
        ("mesh:3x3", "all-gather", {"group": [8, 0, 4]}),
        ("switch:4", "all-gather", {"switching": "store-and-forward"}),
        ("switch:4", "all-gather", {}),
        ("switch:6", "all-reduce", {"group": [0, 1, 2, 5]}),
        ("leaf-spine:2x2x2", "all-reduce", {"chunks": 1}),
        ("switch:4,multicast", "broadcast", {"chunks": 1}),
    ],
)
def test_the_time_is_known(spec, kind, more, tmp_path):
    algorithm = made(spec, kind, **more)
    bundle = export(algorithm, tmp_path / "out")
    assert bundle.predicted_ns == run_bundle(tmp_path / "out").time
    assert run_with_data(algorithm, tmp_path / "out") == bundle.predicted_ns
    assert bundle.predicted_ns == pytest.approx(bundle.planned_ns, rel=0.02)
    cut_through = "switch" in spec or "spine" in spec
    assert (bundle.parts > 1) == (cut_through and "switching" not in more)
    predicted = f"predicted {bundle.predicted_ns} ns"
    assert predicted in (tmp_path / "out" / "run.sh").read_text()


def test_links_of_different_kinds(tmp_path):
    """A machine with slow links between fast boxes: sizes are scaled, latencies rounded."""
    algorithm = weft.synthesize("h100:2", "broadcast", "1MiB", chunks=1, threads=1).algorithm
    bundle = export(algorithm, tmp_path / "out")
    assert bundle.predicted_ns == run_bundle(tmp_path / "out").time
    assert bundle.parts > 1


def test_a_time_far_from_the_plan_has_a_reason(tmp_path):
    """Chunks of one byte cannot be sent in smaller messages."""
    algorithm = made("switch:4", "broadcast", 1, "1MB/s", "0", chunks=1)
    bundle = export(algorithm, tmp_path / "out")
    assert bundle.parts == 1
    (note,) = [note for note in bundle.notes if "planned time" in note]
    late = bundle.predicted_ns / bundle.planned_ns - 1
    assert note.startswith(f"{late:+.1%} on the planned time: switches pass messages on only")


def test_without_times_there_is_nothing_to_come_near_to(tmp_path):
    timed = made("switch:4", "all-gather")
    rows = timed.transfers
    table = Transfers(rows.chunk, rows.src, rows.dst, rows.reduce)
    bundle = export(weft.Algorithm(timed.demands, table), tmp_path / "out", topology=timed.topology)
    assert bundle.planned_ns is None
    assert bundle.parts == 1
    assert bundle.predicted_ns == run_bundle(tmp_path / "out").time
