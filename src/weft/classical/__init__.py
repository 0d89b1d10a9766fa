"""Classical algorithms as planners: to measure against, and to choose from.

A module here adds its algorithms to the table of planners (`classical`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.algorithm import Algorithm
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError, unknown_name
from weft.planners.planner import PLANNERS
from weft.planners.problem import Problem
from weft.topology.model import Topology

if TYPE_CHECKING:
    from weft.classical.planner import Classical

    BASELINES: dict[str, Classical]

__all__ = ["BASELINES", "baseline"]


def __getattr__(name: str) -> Any:
    if name != "BASELINES":  # those by name: all modules must be loaded to know them
        raise AttributeError(f"module 'weft.classical' has no attribute '{name}'")
    from weft.classical.planner import Classical

    return {name: one for name, one in PLANNERS.items() if isinstance(one, Classical)}


def baseline(
    name: str, topology: Topology, demands: Sequence[Collective], cost: CostModel | None = None
) -> Algorithm:
    """The classical algorithm of this name for all demands at once, put on a network.

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
    known = __getattr__("BASELINES")
    if name not in known:
        raise unknown_name("baseline", name, known)
    problem = Problem.of(topology, demands, cost)
    if not demands:
        raise InputError(f"{name}: there is no collective to serve")
    if (reason := known[name].fits(problem)) is not None:
        raise InputError(f"{name} {reason}")
    made: Algorithm = known[name].plan(problem)
    return made
