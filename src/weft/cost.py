"""The cost model: what a hop costs and how long it holds each link. One for all of Weft.

The arithmetic itself lives in the core (``cpp/base/cost.h``), in integer picoseconds; this module
names the choices, so that every result can say under which it was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from weft import _core
from weft.errors import unknown_name
from weft.values import Value

LatencyModel = Literal["pipelined", "blocking"]
Switching = Literal["cut-through", "store-and-forward"]


@dataclass(frozen=True)
class CostModel(Value):
    """How α counts, and how a hop crosses switches.

    Attributes
    ----------
    latency_model
        ``pipelined``: a link is free again after bytes/bandwidth, the chunk is usable α later
        (ASTRA-sim). ``blocking``: α occupies the link too (TACOS).
    switching
        ``cut-through``: a hop takes bytes over its smallest bandwidth plus the sum of α, and
        holds each link for bytes over that link's own bandwidth. ``store-and-forward``: link
        after link.
    """

    latency_model: LatencyModel = "pipelined"
    switching: Switching = "cut-through"

    def __post_init__(self) -> None:
        if self.latency_model not in get_args(LatencyModel):
            raise unknown_name("latency model", self.latency_model, get_args(LatencyModel))
        if self.switching not in get_args(Switching):
            raise unknown_name("switching", self.switching, get_args(Switching))

    @cached_property
    def core(self) -> _core.CostModel:
        """The same choices for the kernels."""
        return _core.CostModel(
            self.latency_model == "blocking", self.switching == "store-and-forward"
        )
