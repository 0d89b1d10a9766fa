"""Weft: the collective algorithm that fits the network you have, proved and bounded.

Names and modules of the package are loaded when first used, so that importing it costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the names of `_HOMES`, for those who check types
    from weft.algorithm import Algorithm as Algorithm
    from weft.algorithm import Transfers as Transfers
    from weft.api import Converted as Converted
    from weft.api import bound as bound
    from weft.api import convert as convert
    from weft.api import load as load
    from weft.api import save as save
    from weft.api import simulate as simulate
    from weft.api import verify as verify
    from weft.bounds import Bound as Bound
    from weft.bounds import Certificate as Certificate
    from weft.bounds import lower_bound as lower_bound
    from weft.collective import Chunks as Chunks
    from weft.collective import Collective as Collective
    from weft.collective import Plan as Plan
    from weft.collective import layout_groups as layout_groups
    from weft.collective.custom import Move as Move
    from weft.collective.custom import all_to_allv as all_to_allv
    from weft.collective.custom import custom as custom
    from weft.collective.custom import permutation as permutation
    from weft.collective.files import load_matrix as load_matrix
    from weft.collective.files import load_pattern as load_pattern
    from weft.collective.files import load_plan as load_plan
    from weft.comparison import Comparison as Comparison
    from weft.comparison import compare as compare
    from weft.cost import CostModel as CostModel
    from weft.engine import Report as Report
    from weft.errors import FormatError as FormatError
    from weft.errors import InputError as InputError
    from weft.errors import PlannerError as PlannerError
    from weft.errors import TopologyError as TopologyError
    from weft.errors import UnclearError as UnclearError
    from weft.errors import UnreachableError as UnreachableError
    from weft.errors import WeftError as WeftError
    from weft.figures import GroupResult as GroupResult
    from weft.formats import Hints as Hints
    from weft.judge import Verdict as Verdict
    from weft.judge import WrongAlgorithmError as WrongAlgorithmError
    from weft.progress import Progress as Progress
    from weft.registry import register as register
    from weft.result import Result as Result
    from weft.synthesis import synthesize as synthesize
    from weft.topology import Topology as Topology
    from weft.topology import load_topology as load_topology
    from weft.topology.files import write_topology as write_topology
    from weft.workload import lower as lower

_HOMES = {
    "weft.algorithm": "Algorithm Transfers",
    "weft.api": "Converted bound convert load save simulate verify",
    "weft.bounds": "Bound Certificate lower_bound",
    "weft.collective": "Chunks Collective Plan layout_groups",
    "weft.collective.custom": "Move all_to_allv custom permutation",
    "weft.collective.files": "load_matrix load_pattern load_plan",
    "weft.comparison": "Comparison compare",
    "weft.cost": "CostModel",
    "weft.engine": "Report",
    "weft.errors": (
        "FormatError InputError PlannerError TopologyError UnclearError UnreachableError WeftError"
    ),
    "weft.figures": "GroupResult",
    "weft.formats": "Hints",
    "weft.judge": "Verdict WrongAlgorithmError",
    "weft.progress": "Progress",
    "weft.registry": "register",
    "weft.result": "Result",
    "weft.synthesis": "synthesize",
    "weft.topology": "Topology load_topology",
    "weft.topology.files": "write_topology",
    "weft.workload": "lower",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # slow to import, and seldom asked for

        return version("weft")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    module = f"weft.{name}"
    try:
        if not name.startswith("__"):
            return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
    raise AttributeError(f"module 'weft' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
