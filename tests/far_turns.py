"""A Broadcast in which the last of those who take turns waits nearly as long as the clock runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.algorithm import Algorithm, SpreadRows, SpreadStep, Timing
from weft.collective import Collective
from weft.cost import CostModel
from weft.topology import Topology
from weft.topology.grid import grid_of
from weft.topology.ladders import ladders_of
from weft.units import CLOCK_PS

HOSTS = 8  # on each of two leaves, whose one link to the spine is slow
CHUNK = 650_000  # bytes: seven turns of it over the spine take nearly all of the clock
PUSH = CHUNK * 1000  # picoseconds over any other link
LAST = CLOCK_PS - 10**15  # all turns after this sum up to more than 64 bits hold


def slow_spine(rate: int = 1) -> Topology:
    npu = np.arange(2 * HOSTS)
    leaf, spine = 2 * HOSTS + npu // HOSTS, 2 * HOSTS + 2
    low, high = np.append(npu, [leaf[0], leaf[-1]]), np.append(leaf, [spine, spine])
    rates = np.append(np.full(2 * HOSTS, 10**9), [rate, rate])
    return Topology.from_links(
        "slow",
        2 * HOSTS,
        np.append(low, high),
        np.append(high, low),
        np.tile(rates, 2),
        np.zeros(2 * len(low), dtype=np.int64),
        switches=3,
        dimensions=(HOSTS, 2),
    )


def far(size: int = CHUNK, first: int = LAST, rate: int = 1, **change: object) -> Algorithm:
    """The root copies across two leaves with one slow link to the spine; then both in their leaf.

    The second step starts at once, whenever the first does.
    """
    network = slow_spine(rate)
    grid = grid_of(network, range(2 * HOSTS))
    rows = SpreadRows(
        grid.sizes,
        grid.npus,
        tuple(ladders_of(network, grid)),
        ((SpreadStep("copy", (1,), 0), SpreadStep("copy", (0,), 0)),),
        1,
        0,
        np.append(first, np.arange(HOSTS - 1) * PUSH),
    )
    demand = Collective.of("broadcast", range(2 * HOSTS), size, root=0)
    return Algorithm((demand,), replace(rows, **change), Timing(network, CostModel()))
