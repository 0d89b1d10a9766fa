"""What the times of an algorithm hold for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from weft import _core
from weft.algorithm.transfers import Routes
from weft.cost import CostModel
from weft.topology.model import Topology
from weft.values import Value


@dataclass(frozen=True, eq=False)
class Timing(Value):
    """A network, a cost model and routes.

    Attributes
    ----------
    topology, cost
        The network, and what a hop takes on it.
    routes
        The routes that rows name by number; none where rows are compact, which know theirs.
    """

    topology: Topology
    cost: CostModel
    routes: Routes = field(default_factory=lambda: Routes.of_links(0))

    @cached_property
    def core(self) -> _core.Timing:
        """The same for the kernels."""
        return _core.Timing(self.topology.core, self.cost.core, self.routes.core)
