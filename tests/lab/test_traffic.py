"""What goes where in a lab, and how fast at most."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.lab.running import carried, in_lab, needs_lab, sent
from weft.topology import Topology, load_topology
from weft.topology.files import write_topology

pytestmark = needs_lab
SIZE = 400_000
SLOW = ("--bandwidth", "2MB/s")


def seconds(said: str, what: str) -> float:
    found = re.search(rf"{re.escape(what)} ([\d.]+)", said)
    assert found is not None, said
    return float(found[1])


def test_a_link_is_no_faster_than_it_should_be() -> None:
    figures, said = in_lab("ring:4", *SLOW, command=sent(f"0>1:{SIZE}"))
    burst = figures["burst_share"] * SIZE * 1.2
    assert seconds(said, f"0>1:{SIZE}") >= (SIZE - 2 * burst) / 2e6
    assert carried(figures, SIZE) == ["0 > 1"]
    assert carried(figures, SIZE // 10) == ["0 > 1"]  # acknowledgements go back, and nothing else
    (row,) = (row for row in figures["per_link"] if row["link_name"] == "0 > 1")
    assert SIZE * 1514 / 1448 <= row["sent_bytes"] <= 1.2 * SIZE
    assert row["drops"] == 0


def test_each_direction_has_its_own_rate(tmp_path: Path) -> None:
    write_topology(
        Topology.from_links("two", 2, [0, 1], [1, 0], [4_000_000, 1_000_000], 0),
        tmp_path / "two.yaml",
    )
    figures, said = in_lab(
        str(tmp_path / "two.yaml"), command=sent(f"0>1:{SIZE}", f"1>0:{SIZE // 2}")
    )
    assert seconds(said, f"0>1:{SIZE}") >= 0.8 * SIZE / 4e6
    assert seconds(said, f"1>0:{SIZE // 2}") >= 0.8 * SIZE / 2 / 1e6
    assert [row["rate_Bps"] for row in figures["per_link"]] == [4_000_000, 1_000_000]


def test_a_one_way_link_carries_acknowledgements_back_beside_the_links(tmp_path: Path) -> None:
    write_topology(
        Topology.from_links("tour", 3, [0, 1, 2], [1, 2, 0], 2_000_000, 0), tmp_path / "tour.yaml"
    )
    figures, _ = in_lab(str(tmp_path / "tour.yaml"), command=sent(f"0>1:{SIZE}", f"1>0@:{SIZE}"))
    assert carried(figures, SIZE) == ["0 > 1", "1 > 2", "2 > 0"]  # to the host the long way
    assert all(row["sent_bytes"] < 1.5 * SIZE for row in figures["per_link"])
    assert 0 < figures["acknowledged_bytes"] < SIZE / 20


def test_links_side_by_side_are_ways_of_their_own(tmp_path: Path) -> None:
    write_topology(
        Topology.from_links("pair", 2, [0, 0, 1], [1, 1, 0], 2_000_000, 0), tmp_path / "pair.yaml"
    )
    both = sent(f"0>1:{SIZE}", f"0>1.1:{SIZE}")
    figures, _ = in_lab(str(tmp_path / "pair.yaml"), command=both)
    assert [row["sent_bytes"] >= SIZE for row in figures["per_link"]] == [True, True, False]
    assert max(row["sent_bytes"] for row in figures["per_link"]) < 1.2 * SIZE


@pytest.mark.parametrize("way", [0, 1])
def test_a_way_through_switches_is_taken_as_it_is_named(way: int) -> None:
    network = load_topology("leaf-spine:2x2x2")
    figures, _ = in_lab("leaf-spine:2x2x2", "--scale", "1e-4", command=sent(f"0>3.{way}:{SIZE}"))
    leaves = [int(network.dst[network.src == npu][0]) for npu in (0, 3)]
    spines = sorted(set(network.dst[network.src == leaves[0]].tolist()) - {0, 1})
    nodes = [0, leaves[0], spines[way], leaves[1], 3]
    names = [network.node_name(node) for node in nodes]
    expected = sorted(f"{a} > {b}" for a, b in pairwise(names))
    assert carried(figures, SIZE // 10) == expected


def test_hosts_that_are_no_neighbours_reach_each_other_through_others() -> None:
    figures, _ = in_lab("line:4", *SLOW, command=sent(f"0>2@:{SIZE}"))
    assert carried(figures, SIZE // 10) == ["0 > 1", "1 > 2"]


def test_a_failed_npu_has_no_host_and_ranks_close_up() -> None:
    """Rank 1 is NPU 2, which reaches NPU 0 the long way; rank 2 is NPU 3."""
    transfers = sent(f"0>2:{SIZE}", f"1>0@:{SIZE}")
    figures, _ = in_lab("mesh:3x2", *SLOW, "--without-npu", "1", command=transfers)
    assert carried(figures, SIZE) == ["0 > 3", "2 > 5", "3 > 0", "4 > 3", "5 > 4"]
