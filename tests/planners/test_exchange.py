"""All-to-All behind switches: right on boxes of any kind, and balanced where NICs fail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.planners.test_producers import check
from weft.topology import load_topology


@pytest.mark.parametrize("share", [0.5, 0.0])
def test_others_of_the_box_carry_what_a_nic_cannot(share: float) -> None:
    network = load_topology("h100:8")
    network = network.scaled(["0-s8"], share) if share else network.without(links=["0-s8"])
    result = weft.synthesize(network, "all-to-all", "64MiB", method="exchange")
    check(result)
    assert result.time <= 1.05 * result.bound.ideal


@given(
    spec=st.sampled_from(["h100:2", "a100:3", "rails:4x3x2", "leaf-spine:4x3x2", "dgx2:3"]),
    slow=st.lists(st.tuples(st.integers(0, 11), st.sampled_from(["10%", "50%"])), max_size=3),
    size=st.integers(1, 1 << 22),
)
@examples(15, deadline=None)
def test_slow_links_of_any_npus(spec: str, slow: list[tuple[int, str]], size: int) -> None:
    network = load_topology(spec)
    for npu, share in slow:
        npu %= network.npus
        link = int(network.dst[network.src == npu].max())
        network = network.scaled([(npu, link)], share)
    check(weft.synthesize(network, "all-to-all", size, method="exchange"))
