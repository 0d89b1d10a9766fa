"""Classical algorithms as producers, to measure against and to fall back on."""

from __future__ import annotations

from collections.abc import Sequence

from weft.algorithm import Algorithm
from weft.baselines.blueconnect import blueconnect
from weft.baselines.bruck import bruck
from weft.baselines.direct import direct
from weft.baselines.double_tree import double_binary_tree, overlapped_double_tree
from weft.baselines.halving import halving_doubling, recursive_doubling
from weft.baselines.hierarchical import hierarchical
from weft.baselines.mapping import Baseline, Sends, mapped, unmapped
from weft.baselines.multitree import multitree
from weft.baselines.one_shot import one_shot
from weft.baselines.ring import bidirectional_ring, multi_ring, ring
from weft.baselines.swing import swing
from weft.baselines.themis import themis
from weft.baselines.tto import tto
from weft.collective import PATTERNS, Collective
from weft.cost import CostModel
from weft.errors import unknown_name
from weft.topology.model import Topology

__all__ = ["BASELINES", "Baseline", "Sends", "baseline", "unmapped"]

_SHARED = ("all-gather", "reduce-scatter", "all-reduce")
_ROOTED = ("broadcast", "reduce")

BASELINES = {
    "direct": Baseline(direct, tuple(PATTERNS), "what every taker needs is sent to it alone"),
    "ring": Baseline(ring, (*_SHARED, *_ROOTED), "every rank sends to the next only"),
    "bidirectional-ring": Baseline(
        bidirectional_ring, (*_SHARED, *_ROOTED), "a ring, half of each share either way round"
    ),
    "multi-ring": Baseline(
        multi_ring, (*_SHARED, *_ROOTED), "several rings at once, on hops of their own"
    ),
    "rhd": Baseline(
        halving_doubling, _SHARED, "recursive halving and doubling: log n rounds of pairs"
    ),
    "recursive-doubling": Baseline(
        recursive_doubling, ("all-reduce",), "pairs exchange whole buffers: half the rounds"
    ),
    "swing": Baseline(swing, _SHARED, "as rhd, with peers nearer on rings and tori"),
    "double-binary-tree": Baseline(
        double_binary_tree, ("all-reduce", *_ROOTED), "two trees, sums up and then copies down"
    ),
    "c-cube": Baseline(
        overlapped_double_tree, ("all-reduce",), "two trees, sums up while copies go down"
    ),
    "bruck": Baseline(
        bruck, ("all-gather", "all-to-all", "all-to-allv"), "log n rounds for any number of ranks"
    ),
    "hierarchical": Baseline(hierarchical, _SHARED, "boxes sum to leaders, which form a ring"),
    "blueconnect": Baseline(blueconnect, _SHARED, "one dimension after the other"),
    "themis": Baseline(themis, _SHARED, "dimensions in orders that keep all of them busy"),
    "multitree": Baseline(multitree, _SHARED, "a tree for every rank, grown over free links"),
    "tto": Baseline(tto, ("all-reduce",), "three trees on a 2D mesh, sums and copies overlapped"),
    "one-shot": Baseline(
        one_shot, ("all-reduce",), "all is sent to all by shortest paths and added up there"
    ),
}
"""The classical algorithms by name. To add one, write its sends and put it here."""


def baseline(
    name: str, topology: Topology, demands: Sequence[Collective], cost: CostModel | None = None
) -> Algorithm:
    """The classical algorithm of this name for all demands at once, put on a network.

    Sends between NPUs that no link joins go over fixed shortest paths; links serve first come
    first. The times are those of a simulation, see `weft.simulate`.

    Parameters
    ----------
    name
        A key of `BASELINES`.
    cost
        Cost model; pipelined and cut-through by default.

    Raises
    ------
    InputError
        If it does not know one of the collectives, or there is none.
    UnreachableError
        If two NPUs that must exchange something have no path.
    """
    if name not in BASELINES:
        raise unknown_name("baseline", name, BASELINES)
    return mapped(name, BASELINES[name], topology, demands, cost)
