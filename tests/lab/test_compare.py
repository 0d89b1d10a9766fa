"""``weft lab --compare``: what it prints, and that links account for what ran."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import weft as api
from tests.cli.command import refused, weft
from tests.cli.test_json import NAMES, keys
from tests.lab.running import needs_lab
from weft.lab import lab_plan
from weft.lab.contenders.data import COLLECTIVES, given, shares, wanted
from weft.lab.orders import orders
from weft.topology import Topology, load_topology
from weft.topology.files import write_topology

SMALL = (
    "--bandwidth",
    "4MB/s",
    "--latency",
    "50us",
    "--size",
    "256KiB",
    "--with",
    "weft",
    "--json",
)


# Two NPUs with two links each way, and with a way through each of two switches.
BESIDE = {
    "links": Topology.from_links("links", 2, [0, 0, 1, 1], [1, 1, 0, 0], 4_000_000, 50_000_000),
    "switches": Topology.from_links(
        *("switches", 2, [0, 0, 2, 3, 1, 1, 2, 3], [2, 3, 1, 1, 2, 3, 0, 0], 4_000_000, 50_000_000),
        switches=2,
    ),
}


@needs_lab
@pytest.mark.parametrize(
    ("network", "collective"),
    [
        ("ring:4", "all-reduce"),
        ("switch:3", "all-gather"),
        ("leaf-spine:2x2x2", "all-to-all"),
        ("links", "all-reduce"),
        ("switches", "all-gather"),
    ],
)
def test_links_account_for_what_ran(network: str, collective: str, tmp_path: Path) -> None:
    if network in BESIDE:
        write_topology(BESIDE[network], tmp_path / f"{network}.yaml")
        network = str(tmp_path / f"{network}.yaml")
    done = weft("lab", network, "--compare", collective, *SMALL)
    assert done.returncode == 0, (done.stdout, done.stderr)
    figures = json.loads(done.stdout)
    assert {name for name, _ in keys(figures)} <= NAMES
    (one,) = figures["contenders"]
    assert (one["contender"], one["wrong"], len(one["runs_us"])) == ("weft", 0, 5)
    # A shaped link cannot be faster than planned, but for its bursts.
    assert one["over_plan"] > 0.7
    assert one["carried_bytes"] >= one["needed_bytes"]
    planned = planned_bytes(network, collective)
    for row, bytes_ in zip(one["per_link"], planned, strict=True):
        least = 5 * bytes_
        assert least <= row["sent_bytes"] <= 1.3 * least + 40_000, (row, least)
    if tmp_path.as_posix() in network:
        assert all(planned)


def planned_bytes(network: str, collective: str) -> list[int]:
    """What the plan sends over each link."""
    topology = load_topology(network, "4MB/s", "50us")
    algorithm = api.synthesize(topology, collective, "256KiB").algorithm
    rows, routes, sizes = algorithm.transfers, algorithm.routes, algorithm.chunks.bytes
    assert rows.route is not None
    place, links = routes.crossed(rows.route)
    sent = np.bincount(links, sizes[rows.chunk][place], topology.links)
    found: list[int] = sent.astype(int).tolist()
    return found


@needs_lab
def test_an_algorithm_in_a_file_runs_on_its_network(tmp_path: Path) -> None:
    speed = ("--bandwidth", "4GB/s", "--latency", "50ns")
    made = weft("synth", "ring:3", "all-reduce", "--size", "64KiB", *speed, "-o", "t", cwd=tmp_path)
    assert made.returncode == 0
    command = ("weft", "run", "t", "--iterations", "1", "--json")
    done = weft("lab", "ring:3", *speed, "--scale", "1e-3", "--", *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    planned = api.load(tmp_path / "t").time_us
    assert run["wrong"] == 0
    assert run["planned_us"] == pytest.approx(1000 * planned)
    assert run["measured_us"] > 500 * planned


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_the_data_shows_what_is_in_a_wrong_place(collective: str, ranks: int) -> None:
    size = 4 * 30 * ranks
    share = shares(collective, size, ranks)
    sent = [given(collective, rank, ranks, size) for rank in range(ranks)]
    for rank in range(ranks):
        right = wanted(collective, rank, ranks, size)
        if collective == "all-reduce":
            assert right.tolist() == sum(sent).tolist()
        elif collective == "all-gather":
            assert right.tolist() == [x for one in sent for x in one.tolist()]
        else:
            parts = [one[rank * share : (rank + 1) * share].tolist() for one in sent]
            assert right.tolist() == [x for part in parts for x in part]
        assert len(set(right.tolist())) > 1


def test_orders_are_orders_and_a_tour_is_short() -> None:
    plan = lab_plan(load_topology("mesh:4x4", bandwidth="1MB/s"))
    found = orders(plan)
    assert all(sorted(order) == list(range(16)) for order in found.values())
    tour = found["tour"]
    ends = set(zip(plan.topology.src.tolist(), plan.topology.dst.tolist(), strict=True))
    assert all(pair in ends for pair in zip(tour, [*tour[1:], tour[0]], strict=True))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--compare", "broadcast", "--size", "1MiB"], "--compare is for all-reduce"),
        (["--compare", "all-reduce"], "--compare needs --size"),
        (["--compare", "all-reduce", "--size", "1MiB", "--with", "nccl"], "unknown contender"),
        (["--compare", "all-reduce", "--size", "1MiB", "--", "true"], "takes no command"),
        (["--size", "1MiB", "--", "true"], "--size goes with --compare"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], words: str) -> None:
    assert words in refused("lab", "ring:4", *arguments)
