"""Links that are slower, new or gone, and what is said of those that are not there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.cli.command import refused
from tests.cli.command import weft as command
from tests.examples import examples
from tests.strategies import SIZES, networks
from tests.topology.helpers import assert_same, pairs
from weft.bounds import lower_bound
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError, TopologyError
from weft.topology import Topology, load_topology

GB_S = 10**9


def rates(network: Topology) -> dict[tuple[int, int], int]:
    return dict(zip(pairs(network), network.bandwidth.tolist(), strict=True))


def test_slower_links() -> None:
    ring = load_topology("ring:4")
    slow = ring.scaled(["0-1", (2, 3)], "25%")
    assert {pair for pair, rate in rates(slow).items() if rate == 12_500_000_000} == {
        (0, 1),
        (1, 0),
        (2, 3),
    }
    assert slow.title == "ring:4 0-1 at 25%, 2>3 at 25%"
    assert slow.latency.tolist() == ring.latency.tolist()
    assert ring.scaled("0-1", 1) is ring
    assert_same(load_topology("ring:4", degraded_links=["0-1=25%", "2>3=25%"]), slow)


def test_a_slower_link_makes_a_network_unlike_itself() -> None:
    ring = load_topology("ring:8")
    torn = ring.without(links=["2-3"])
    assert ring.translates
    assert torn.whole is ring
    for slow in (ring.scaled("0-1", 0.5), torn.scaled("0-1", 0.5), torn.with_link(0, 1, latency=7)):
        assert not slow.translates
        assert slow.whole is None
    assert ring.scaled("0-1", 0.5).without(links=["2-3"]).whole is None


def test_new_links_and_other_speeds() -> None:
    ring = load_topology("ring:4")
    more = ring.with_link(0, 2, bandwidth="25GB/s", latency="1us")
    assert pairs(more)[-2:] == [(0, 2), (2, 0)]
    assert more.bandwidth[-2:].tolist() == [25 * GB_S] * 2
    assert more.latency[-2:].tolist() == [10**6] * 2
    assert more.title == "ring:4 0-2 at 25GB/s and 1us"
    assert not more.translates
    other = ring.with_link(1, 0, bandwidth=GB_S, both=False)
    assert {pair for pair, rate in rates(other).items() if rate == GB_S} == {(1, 0)}
    assert other.title == "ring:4 1>0 at 1GB/s"
    switched = load_topology("switch:2").with_link("s0", 1, latency="1ns")
    assert switched.latency.tolist() == [500_000, 1000, 500_000, 1000]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"src": 0, "dst": 2}, "ring:4 has no link 0-2 yet; give it a bandwidth and a latency"),
        ({"src": 0, "dst": 9, "bandwidth": 1}, "the link names 9, which ring:4 does not have"),
        ({"src": 0, "dst": "s0"}, "the link names s0"),
        ({"src": 1, "dst": 1, "bandwidth": 1, "latency": 0}, "joins node 1 to itself"),
        ({"src": 0, "dst": 1, "bandwidth": 0}, "has no positive bandwidth"),
        ({"src": 0, "dst": 1, "bandwidth": "fast"}, "ring:4: bandwidth 'fast' is not a number"),
    ],
)
def test_wrong_links(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        load_topology("ring:4").with_link(**arguments)  # type: ignore[arg-type]


def test_no_link_joins_what_is_gone() -> None:
    torn = load_topology("ring:4", without_npus=[1])
    with pytest.raises(TopologyError, match="NPU 1 was removed; no link can join it"):
        torn.with_link(0, 1, bandwidth=1, latency=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-2=50%", "ring:4 has no link 0-2 to scale"),
        ("0-2=5GB/s", "ring:4 has no link 0-2 to degrade"),
        ("0-1", "degraded link '0-1' says no speed; write it like 3-4=50% or 3>4=25GB/s"),
        ("0-1=0%", "share '0%' is not more than 0"),
        ("0-1=half", "bandwidth 'half' is not a number with a unit"),
        ("0=50%", "link '0' is not one"),
        ("0-1=0.0000000000001%", "of 50GB/s is out of range"),
    ],
)
def test_wrong_degradations(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_topology("ring:4", degraded_links=[text])


def test_links_say_where_a_speed_is_wrong() -> None:
    with pytest.raises(TopologyError, match="pair: link 1: bandwidth 'slow' is not a number"):
        Topology.from_links("pair", 2, [0, 1], [1, 0], ["50GB/s", "slow"], 0)
    with pytest.raises(TopologyError, match=r"pair: link 1: latency 0.5 is not a whole number"):
        Topology.from_links("pair", 2, [0, 1], [1, 0], 1, [1, 0.5])
    with pytest.raises(TopologyError, match="pair: 3 bandwidths for 2 links"):
        Topology.from_links("pair", 2, [0, 1], [1, 0], [1, 2, 3], 0)


@examples(25)
@given(st.data())
def test_algorithms_on_slower_links_are_right(data: st.DataObject) -> None:
    network = data.draw(networks().filter(lambda one: one.links and len(one.members) > 1))
    pair = data.draw(st.sampled_from(sorted(set(pairs(network)))))
    share = data.draw(st.sampled_from([0.5, 0.9, 0.01]))
    if round(int(network.bandwidth.min()) * share) < 1:
        return
    kind = data.draw(st.sampled_from(["all-gather", "all-reduce", "all-to-all"]))
    demand = Collective.of(kind, network.members.tolist(), data.draw(SIZES))
    slow = network.scaled([pair], share)
    result = weft.synthesize(slow, demand, chunks=1, threads=1)
    assert weft.judge.verify(result.algorithm)
    assert result.algorithm.time >= result.bound.time
    assert result.algorithm.time >= lower_bound(network, demand.chunks, CostModel()).time


def test_the_command_takes_slower_links() -> None:
    done = command(
        *("synth", "torus:4x4", "all-to-all", "--size", "1MiB", "--json"),
        *("--degrade-link", "0-1=50%", "--degrade-link", "4>5=10GB/s"),
    )
    assert done.returncode == 0, done.stderr
    assert '"0-1 at 50%"' in done.stdout
    assert '"4>5 at 10GB/s"' in done.stdout
    assert "has no link 0-5" in refused("topo", "show", "ring:8", "--degrade-link", "0-5=50%")
