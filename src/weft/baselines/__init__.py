"""Classical algorithms as producers, to measure against and to fall back on."""

from __future__ import annotations

from collections.abc import Sequence

from weft.algorithm import Algorithm
from weft.baselines.direct import direct
from weft.baselines.mapping import Baseline, Sends, mapped
from weft.collective import PATTERNS, Collective
from weft.cost import CostModel
from weft.errors import unknown_name
from weft.topology.model import Topology

__all__ = ["BASELINES", "Baseline", "Sends", "baseline"]

BASELINES = {
    "direct": Baseline(direct, tuple(PATTERNS), "what every taker needs is sent to it alone"),
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
