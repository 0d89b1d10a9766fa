"""Simulation: algorithms and whole workloads run on a network, event by event."""

from weft.simulate.algorithms import CAUSES, CriticalPath, Simulation, simulate
from weft.simulate.astra_sim import simulate_astra_sim
from weft.simulate.trace_run import Links, Step, Stuck, TraceRun
from weft.simulate.traces import is_workload, simulate_traces

__all__ = [
    "CAUSES",
    "CriticalPath",
    "Links",
    "Simulation",
    "Step",
    "Stuck",
    "TraceRun",
    "is_workload",
    "simulate",
    "simulate_astra_sim",
    "simulate_traces",
]
