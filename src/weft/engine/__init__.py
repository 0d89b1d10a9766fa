"""The event-driven engine: algorithms run on a network, event by event."""

from weft.engine.algorithms import CAUSES, CriticalPath, Order, Simulation, placed, simulate
from weft.engine.occupied import Occupied
from weft.engine.path_times import PathTimes
from weft.engine.report import QUARTERS, LinkUse, PlanDifference, Report

__all__ = [
    "CAUSES",
    "QUARTERS",
    "CriticalPath",
    "LinkUse",
    "Occupied",
    "Order",
    "PathTimes",
    "PlanDifference",
    "Report",
    "Simulation",
    "placed",
    "simulate",
]
