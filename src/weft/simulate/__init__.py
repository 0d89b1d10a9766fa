"""Simulation: algorithms and whole workloads run on a network, event by event."""

from weft.simulate.algorithms import CAUSES, CriticalPath, Simulation, simulate

__all__ = ["CAUSES", "CriticalPath", "Simulation", "simulate"]
