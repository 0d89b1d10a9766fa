"""Several collectives at once: each planned alone, then laid over each other."""

from __future__ import annotations

from dataclasses import replace

from weft.algorithm import Algorithm
from weft.errors import UnreachableError
from weft.planners.listed import timed
from weft.planners.planner import Planner, add
from weft.planners.portfolio import best_alone
from weft.planners.problem import AUTO, Problem
from weft.planners.schedule import Schedule, overlaid

_CLOSE = 1.01  # tried where a plan for all as one leaves more than this to the bound


class Overlay(Planner):
    """Rows that collide wait for each other."""

    name = "overlay"
    summary = "collectives that run at once: each planned alone, laid over each other"
    rank = 80
    beside = judged = False

    def fits(self, problem: Problem) -> str | None:
        return None if len(problem.demands) > 1 else "plans several collectives that run at once"

    def is_worth_trying(self, problem: Problem, best: Algorithm | None) -> bool:
        return best is None or best.time > problem.bound * _CLOSE

    def plan(self, problem: Problem) -> Algorithm:
        """With NPUs of other groups as relays, and without; the better is kept."""
        method = AUTO if problem.method == self.name else problem.method
        ways: list[Algorithm] = []
        for relay in (True, False):
            own = [replace(demand, relay=demand.relay and relay) for demand in problem.demands]
            alone = replace(problem, method=method)
            try:
                single = [best_alone(alone.only(demand)) for demand in own]
            except UnreachableError:
                if relay:
                    raise
                continue  # some group needs others to relay
            ways += _laid_over(problem, single)
        return min(ways, key=lambda algorithm: algorithm.time)


def _laid_over(problem: Problem, single: list[Algorithm]) -> list[Algorithm]:
    """Once all begin together, once all would end together."""
    method = " + ".join(dict.fromkeys(str(a.provenance["method"]) for a in single))
    last = max(algorithm.time for algorithm in single)
    schedules = [Schedule.of(algorithm) for algorithm in single]
    return [
        timed(problem, [overlaid(schedules, delays, problem.demands)], method)
        for delays in ([0] * len(single), [last - algorithm.time for algorithm in single])
    ]


add(Overlay())
