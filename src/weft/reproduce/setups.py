"""The set-ups of a paper: what is measured one by one, and what is concluded from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft.reproduce.report import Experiment, Paper


@dataclass(frozen=True)
class Setup:
    """An experiment that is still to be run.

    Attributes
    ----------
    instances
        What is measured, one after the other.
    measure
        Measures one of them.
    conclude
        Makes an experiment of all that was measured, in the order of the instances.
    """

    instances: Sequence[Any]
    measure: Callable[[Any], Any]
    conclude: Callable[[Sequence[Any]], Experiment]

    def run(self, tick: Callable[[], None]) -> Experiment:
        """Measure everything; `tick` is called after each instance."""
        measured = []
        for instance in self.instances:
            measured.append(self.measure(instance))
            tick()
        return self.conclude(measured)


@dataclass(frozen=True)
class Reproduction:
    """A paper, and its set-ups: ``setups(quick)``, smaller ones if quick."""

    paper: Paper
    setups: Callable[[bool], Sequence[Setup]]
