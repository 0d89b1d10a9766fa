"""Weft: the collective algorithm that fits the network you have, proved and bounded.

The names below are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.algorithm import Algorithm, Transfers
    from weft.api import load, synthesize
    from weft.bounds import Bound, lower_bound
    from weft.collective import (
        Chunks,
        Collective,
        Plan,
        layout_groups,
        load_matrix,
        load_pattern,
        load_plan,
    )
    from weft.collective.custom import Move, all_to_allv, custom, permutation
    from weft.cost import CostModel
    from weft.errors import (
        FormatError,
        InputError,
        PlannerError,
        TopologyError,
        UnclearError,
        UnreachableError,
        WeftError,
    )
    from weft.judge import Verdict
    from weft.progress import Progress
    from weft.registry import register
    from weft.result import GroupResult, Result
    from weft.topology import Topology, load_topology, write_topology

__all__ = [
    "Algorithm",
    "Bound",
    "Chunks",
    "Collective",
    "CostModel",
    "FormatError",
    "GroupResult",
    "InputError",
    "Move",
    "Plan",
    "PlannerError",
    "Progress",
    "Result",
    "Topology",
    "TopologyError",
    "Transfers",
    "UnclearError",
    "UnreachableError",
    "Verdict",
    "WeftError",
    "all_to_allv",
    "custom",
    "layout_groups",
    "load",
    "load_matrix",
    "load_pattern",
    "load_plan",
    "load_topology",
    "lower_bound",
    "permutation",
    "register",
    "synthesize",
    "write_topology",
]

_HOMES = {
    "weft.algorithm": ("Algorithm", "Transfers"),
    "weft.api": ("load", "synthesize"),
    "weft.bounds": ("Bound", "lower_bound"),
    "weft.collective": (
        "Chunks",
        "Collective",
        "Move",
        "Plan",
        "all_to_allv",
        "custom",
        "layout_groups",
        "load_matrix",
        "load_pattern",
        "load_plan",
        "permutation",
    ),
    "weft.cost": ("CostModel",),
    "weft.errors": (
        "FormatError",
        "InputError",
        "PlannerError",
        "TopologyError",
        "UnclearError",
        "UnreachableError",
        "WeftError",
    ),
    "weft.progress": ("Progress",),
    "weft.registry": ("register",),
    "weft.result": ("GroupResult", "Result"),
    "weft.topology": ("Topology", "load_topology", "write_topology"),
    "weft.judge": ("Verdict",),
}
_ROOMS = {
    "algorithm",
    "bounds",
    "classical",
    "collective",
    "comparison",
    "engine",
    "export",
    "formats",
    "judge",
    "language",
    "planners",
    "replay",
    "topology",
    "workload",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # slow to import, and seldom asked for

        return version("weft")
    if name in _ROOMS:
        return import_module(f"weft.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'weft' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
