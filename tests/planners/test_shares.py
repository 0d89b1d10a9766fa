"""Collectives in shares: right among unlike hosts that share adapters, even by rate, repeatable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.planners.test_producers import check
from tests.strategies import COSTS, same
from weft.cost import CostModel
from weft.errors import InputError
from weft.planners.methods import shares
from weft.topology import Topology

GB = 10**9


@dataclass(frozen=True)
class Host:
    """GPUs on one switch, and adapters: of each the rail, how many GPUs share it, and GB/s."""

    gpus: int
    adapters: tuple[tuple[int, int, int], ...]


def cluster(hosts: Sequence[Host], rails: int, spines: int = 2) -> Topology:
    """Hosts whose adapters hang on PCI switches, a leaf for each rail, and spines."""
    npus = sum(host.gpus for host in hosts)
    links: list[tuple[int, int, int, int]] = []
    leaves = list(range(npus, npus + rails))
    tops = list(range(npus + rails, npus + rails + spines))
    links += [(leaf, top, 200 * GB, 500_000) for leaf in leaves for top in tops]
    nodes, first = npus + rails + spines, 0
    for host in hosts:
        box, nodes = nodes, nodes + 1
        links += [(first + gpu, box, 450 * GB, 350_000) for gpu in range(host.gpus)]
        turn = 0
        for rail, share, rate in host.adapters:
            pci, nodes = nodes, nodes + 1
            links.append((pci, leaves[rail], rate * GB, 1_150_000))
            for _ in range(share):
                links.append((first + turn % host.gpus, pci, 63 * GB, 150_000))
                turn += 1
        first += host.gpus
    src, dst, rate, delay = (list(column) for column in zip(*links, strict=True))
    return Topology.from_links(
        "cluster", npus, src + dst, dst + src, rate * 2, delay * 2, switches=nodes - npus
    )


@st.composite
def unlike(draw: st.DrawFn) -> Topology:
    """Hosts with GPUs, adapters and rates of any number, on two or three rails."""
    rails = draw(st.integers(2, 3))
    adapter = st.tuples(
        st.integers(0, rails - 1), st.integers(2, 3), st.sampled_from([25, 50, 100])
    )
    adapters = st.lists(adapter, min_size=1, max_size=3).map(tuple)
    # No adapter twice at a GPU: the GPUs of adapters follow each other around the host.
    host = st.builds(Host, st.integers(9, 11), adapters)
    return cluster(draw(st.lists(host, min_size=8, max_size=9)), rails)


def even(count: int = 10, gpus: int = 8) -> list[Host]:
    """Hosts of one kind: two GPUs to each of four adapters."""
    return [Host(gpus, tuple((rail, 2, 50) for rail in range(4)))] * count


@given(
    network=unlike(),
    kind=st.sampled_from(["all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce"]),
    size=st.one_of(st.integers(1, 4096), st.integers(1, 1 << 24)),
    cost=COSTS,
)
@examples(8, deadline=None)
def test_unlike_hosts_of_any_kind(network: Topology, kind: str, size: int, cost: CostModel) -> None:
    """The judge accepts it; on any number of threads it is the same."""
    first, again = (
        weft.synthesize(network, kind, size, method="shares", threads=threads, **asdict(cost))
        for threads in (1, 3)
    )
    check(first)
    assert first.algorithm.provenance["method"] == "shares"
    assert first.time >= first.bound.ideal
    assert same(first.algorithm, again.algorithm)


def test_adapters_carry_what_their_rate_allows() -> None:
    """Hosts that lack an adapter own less: all adapters are busy for about as long.

    Sums of whole shares are dealt out, of which an adapter here carries some twelve.
    """
    hosts = [*even(8), Host(8, ((0, 3, 50), (1, 3, 50), (2, 2, 50))), Host(8, ((3, 8, 200),))]
    network = cluster(hosts, 4)
    result = weft.synthesize(network, "all-reduce", "256MiB", method="shares")
    check(result)
    rows = result.algorithm.transfers
    row, link = result.algorithm.routes.crossed(rows.require_times().route)
    carried = np.bincount(link, result.algorithm.chunks.bytes[rows.chunk[row]], network.links)
    leaves = np.arange(network.npus, network.npus + 4)
    ports = np.isin(network.dst, leaves) & (network.src >= network.npus + 6)
    busy = (carried / network.bandwidth)[ports]
    assert ports.sum() == 8 * 4 + 3 + 1
    assert busy.max() <= (1 + 1.5 / 12) * busy.min()
    assert np.sort(busy)[-2] <= 1.02 * busy.min()


@pytest.mark.parametrize("size", ["64KiB", "64MiB"])
def test_auto_takes_it_where_it_is_no_slower_than_classical_ones(size: str) -> None:
    hosts = [*even(9), Host(8, ((0, 3, 50), (1, 3, 50), (2, 2, 50)))]
    network = cluster(hosts, 4)
    found = weft.synthesize(network, "all-reduce", size)
    check(found)
    for method in ("ring", "recursive-doubling", "direct"):
        try:
            other = weft.synthesize(network, "all-reduce", size, method=method)
        except InputError:  # not of so many NPUs
            continue
        assert found.time <= other.time, method


@pytest.mark.parametrize(
    ("kind", "most"), [("all-gather", 1.25), ("reduce-scatter", 1.25), ("broadcast", 1.6)]
)
def test_copies_keep_adapters_busy(kind: str, most: float) -> None:
    """The host that lacks an adapter gets by three what others get by four."""
    network = cluster([*even(9), Host(8, ((0, 3, 50), (1, 3, 50), (2, 2, 50)))], 4)
    result = weft.synthesize(network, kind, "1GiB", method="shares")
    check(result)
    assert result.time <= most * result.bound.ideal


def test_sums_in_boxes_keep_off_adapters() -> None:
    """GPUs that share an adapter have a PCI switch in common, and a faster one with all."""
    network = cluster([*even(9), Host(8, ((0, 8, 50),))], 4)
    algorithm = weft.synthesize(network, "all-reduce", "1GiB", method="shares").algorithm
    row, link = algorithm.routes.crossed(algorithm.transfers.require_times().route)
    inside = np.bincount(row)[row] == 2
    assert inside.any()
    assert (network.bandwidth[link[inside]] == 450 * GB).all()


def test_what_others_plan_better_is_left_to_them() -> None:
    """Hosts that are alike, few NPUs, NPUs with ways out of their own, other patterns."""
    broken = weft.load_topology("h100:12", without_links=["0-s12"])
    result = weft.synthesize(broken, "all-reduce", "64KiB")
    assert result.algorithm.provenance["method"] == "gateways"
    assert result.time <= 1.05 * result.bound.ideal
    for network, kind in (
        (broken, "all-reduce"),
        (cluster(even(), 4), "all-reduce"),
        (cluster([*even(4), Host(8, ((0, 8, 50),))], 4), "all-reduce"),
        (cluster([*even(9), Host(8, ((0, 8, 50),))], 4), "all-to-all"),
    ):
        with pytest.raises(InputError, match=f"more than {shares.FEW} NPUs in boxes that are not"):
            weft.synthesize(network, kind, "1MiB", method="shares")
