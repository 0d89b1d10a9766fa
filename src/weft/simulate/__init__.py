"""Simulation: algorithms and whole workloads run on a network, event by event."""

from weft.simulate.algorithms import CAUSES, CriticalPath, Simulation, simulate
from weft.simulate.astra_sim import simulate_astra_sim
from weft.simulate.occupied import Occupied
from weft.simulate.path_times import PathTimes
from weft.simulate.report import QUARTERS, LinkUse, PlanDifference, Report
from weft.simulate.timeline import timeline_of
from weft.simulate.trace_run import Links, Step, Stuck, TraceRun
from weft.simulate.trace_timeline import trace_timeline_of
from weft.simulate.traces import is_workload, simulate_traces

__all__ = [
    "CAUSES",
    "QUARTERS",
    "CriticalPath",
    "LinkUse",
    "Links",
    "Occupied",
    "PathTimes",
    "PlanDifference",
    "Report",
    "Simulation",
    "Step",
    "Stuck",
    "TraceRun",
    "is_workload",
    "simulate",
    "simulate_astra_sim",
    "simulate_traces",
    "timeline_of",
    "trace_timeline_of",
]
