"""Replay: Chakra traces run on Weft's networks or ASTRA-sim's, and timelines of any run."""

from weft.replay.astra_sim import simulate_astra_sim
from weft.replay.timeline import timeline_of
from weft.replay.trace_run import Links, Step, Stuck, TraceRun
from weft.replay.trace_timeline import trace_timeline_of
from weft.replay.traces import is_workload, simulate_traces

__all__ = [
    "Links",
    "Step",
    "Stuck",
    "TraceRun",
    "is_workload",
    "simulate_astra_sim",
    "simulate_traces",
    "timeline_of",
    "trace_timeline_of",
]
