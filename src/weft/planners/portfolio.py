"""The portfolio: one loop that asks planners in turn, and keeps the plan with the least time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from weft.algorithm import Algorithm
from weft.clock import check_clock
from weft.errors import InputError, PlannerError, UnreachableError, WeftError
from weft.judge import verify
from weft.planners.attempts import Attempt
from weft.planners.chunking import is_cut_of, leaves_a_gap
from weft.planners.listed import Listed, timed
from weft.planners.planner import PLANNERS, Planner, guarded
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule
from weft.reachability import check_first_chunk
from weft.threads import in_threads

MAX_SEED = 2**63 - 1
_FEW = 32  # NPUs: of more, others hardly make more of switches that copy and add
_EARLY = 35  # ranks of planners that know the structure of networks: they are asked first


def solve(problem: Problem, trials: int = 1) -> Algorithm:
    """The best plan of all planners that fit; each trial has a seed of its own.

    Raises
    ------
    InputError
        The only method to be used does not fit.
    UnreachableError
        Some chunk has no path to where it must go.
    """
    planners = _candidates(problem)
    whole, problem = problem, problem.on(problem.topology.plain)
    _check(problem, planners)
    able = [one for one in planners if whole.topology is not problem.topology and _uses(one)]
    workers = min(problem.threads, trials)
    quick = [one for one in able if not one.seeded]
    able = [one for one in able if one.seeded]
    planners = [one for one in planners if one not in quick]
    early = [planner for planner in planners if problem.is_auto and planner.turn(problem) <= _EARLY]
    seeded = [planner for planner in planners if planner.seeded and planner not in early]
    late = [planner for planner in planners if not planner.seeded and planner not in early]
    plain = _run(problem, early)
    known = _run(whole, quick, plain)
    if known is not None and known is not plain and not leaves_a_gap(whole, known.time):
        return known
    if known is not None and able:
        few = sum(demand.ranks for demand in problem.demands) < _FEW
        near = whole if few else problem  # bounds of both take as long again
        asked = [*early, *quick]
        able = [one for one in able if all(each.rivals(near, known, one) for each in asked)]
    if known is not None and leaves_a_gap(problem, known.time):
        seeded, late = (
            [one for one in some if _is_rival(problem, known, early, one)]
            for some in (seeded, late)
        )

    def attempt(number: int) -> Algorithm | None:
        quiet = number > 0 and workers > 1
        seed = (problem.seed + number) & MAX_SEED
        mine = replace(problem, seed=seed, quiet=quiet, threads=problem.threads // workers)
        again = [planner for planner in early if planner.seeded] if number > 0 else []
        best = _run(mine, [*again, *seeded], known)
        # Copies can be in the way of what is wanted more: so first without.
        return _run(replace(mine, task=whole.task), able, best)

    best = attempt(0)
    for first in range(1, trials if any(one.seeded for one in planners) else 1, workers):
        batch = range(first, min(first + workers, trials))
        problem.progress.enter(f"planning (trials {first + 1} to {batch[-1] + 1} of {trials})")
        best = _least([best, *in_threads(attempt, batch, workers)])
    best = _run(problem, late, best)
    if best is None:
        raise InputError(f"method {problem.method} finds no plan; use auto")
    return best.on(whole.topology)


def _uses(planner: Planner) -> bool:
    """Whether a planner is asked what it makes of switches that copy or add: users' are, too."""
    return planner.uses_switches or (planner.judged and planner.seeded)


def _is_rival(
    problem: Problem, known: Algorithm, early: Sequence[Planner], planner: Planner
) -> bool:
    """Whether a planner should be asked after the first ones."""
    if all(first.rivals(problem, known, planner) for first in early):
        return True
    note = f"seldom better than {known.provenance['method']} here"
    problem.tried.append(Attempt(planner.name, note=note))
    return False


def best_alone(problem: Problem) -> Algorithm:
    """The best plan of Weft's own planners for a part of a larger problem, as a schedule."""
    planners = [one for one in _candidates(problem) if not one.beside and not one.keeps_apart]
    best = _run(problem, planners)
    if best is None:
        raise InputError(f"method {problem.method} finds no plan; use auto")
    return best


def _candidates(problem: Problem) -> list[Planner]:
    """All planners; or the only one to be used, which may serve several collectives one by one."""
    if problem.is_auto:
        return sorted(PLANNERS.values(), key=lambda planner: planner.turn(problem))
    only = PLANNERS.find(problem.method)
    each = len(problem.demands) > 1 and not only.beside and only.name != "overlay"
    return [only, PLANNERS["overlay"]] if each else [only]


def _check(problem: Problem, planners: Sequence[Planner]) -> None:
    """Raise what is clear before planning: there is no way, or no time, for what is asked."""
    alike = any(planner.plans_alike(problem) for planner in planners)
    check_clock(problem.topology, problem.demands, alike=alike)
    known = problem.task.is_symmetric or (alike and problem.task.is_too_large_for_tables)
    if not known and not all(planner.beside for planner in planners):
        check_first_chunk(problem.topology, problem.demand)


def _run(
    problem: Problem, planners: Sequence[Planner], best: Algorithm | None = None
) -> Algorithm | None:
    """Ask planners in turn until none can be better; None if none of them has a plan."""
    refused: list[WeftError] = []
    for batch in _batches(planners):
        known = replace(problem, below=best.time) if best is not None else problem
        asked = [planner for planner in batch if _may_plan(problem, planner, best, refused)]
        found = _asked(known, asked, best, refused)
        judged = problem.is_auto and any(planner.judged for planner in asked)
        best = _accepted(problem, best, found) if judged else _least([best, *found])
    if best is None and refused and planners:
        raise next((one for one in refused if isinstance(one, UnreachableError)), refused[0])
    return best


def _batches(planners: Sequence[Planner]) -> Iterator[list[Planner]]:
    """Planners one by one; neighbours that run side by side together."""
    for side_by_side, group in groupby(planners, key=lambda planner: planner.side_by_side):
        if side_by_side:
            yield list(group)
        else:
            yield from ([planner] for planner in group)


def _may_plan(
    problem: Problem, planner: Planner, best: Algorithm | None, refused: list[WeftError]
) -> bool:
    """Whether a planner fits; what does not is only said where it was asked for by name."""
    if best is not None and not guarded(planner, planner.can_improve, problem, best):
        problem.tried.append(Attempt(planner.name, note="cannot be better"))
        return False
    if problem.is_auto and problem.task.is_too_large_for_tables and isinstance(planner, Listed):
        return True  # `fits` would need a table of chunks; `search` sees first how large it is
    reason = guarded(planner, planner.fits, problem)
    if reason is not None:
        problem.tried.append(Attempt(planner.name, note=reason))
    if reason is not None and not problem.is_auto:
        refused.append(InputError(f"method {planner.name} {reason}; use auto"))
    return reason is None


def _asked(
    problem: Problem, planners: Sequence[Planner], best: Algorithm | None, refused: list[WeftError]
) -> list[Algorithm]:
    """What planners make of it, side by side if there are several."""
    if len(planners) > 1:
        problem.say("trying classical algorithms")
        problem.progress.begin(len(planners))

    def ask(planner: Planner) -> Algorithm | WeftError | None:
        began = time.perf_counter()
        answer = asked(planner)
        seconds = time.perf_counter() - began
        problem.tried.append(_attempt(planner, answer, seconds))
        return answer

    def asked(planner: Planner) -> Algorithm | WeftError | None:
        try:
            return _answer(problem, planner, best)
        except (InputError, UnreachableError) as error:
            # A method may fit each of several collectives but not the mix.
            if not planner.beside and len(problem.demands) == 1:
                raise
            return error
        finally:
            if len(planners) > 1:
                problem.progress.advance()

    answers = in_threads(ask, planners, problem.threads)
    refused += [answer for answer in answers if isinstance(answer, WeftError)]
    return [answer for answer in answers if isinstance(answer, Algorithm)]


def _attempt(planner: Planner, answer: Algorithm | WeftError | None, seconds: float) -> Attempt:
    if isinstance(answer, Algorithm):
        chunks = sum(demand.chunk_count for demand in answer.demands)
        return Attempt(planner.name, answer.time, chunks, seconds)
    note = "nothing better" if answer is None else str(answer)
    return Attempt(planner.name, seconds=seconds, note=note)


def _answer(problem: Problem, planner: Planner, best: Algorithm | None) -> Algorithm | None:
    """What a planner finds; of others' planners nothing is taken on trust."""
    found = guarded(planner, planner.search, problem, best)
    if found is None or not planner.judged:
        return found
    if not is_cut_of(problem, found.demands):
        raise PlannerError(f"method {planner.name} plans other collectives than it is asked for")
    if found.topology is not problem.topology or found.cost != problem.cost:
        raise PlannerError(f"method {planner.name} plans for another network or cost model")
    return replace(found, provenance={"method": planner.name, **found.provenance})


def _accepted(
    problem: Problem, best: Algorithm | None, found: Sequence[Algorithm]
) -> Algorithm | None:
    """The best so far, or a plan that takes less time and that the judge finds right."""
    ordered = sorted(found, key=lambda algorithm: algorithm.time)
    right = next((algorithm for algorithm in ordered if verify(algorithm).ok), None)
    if right is None:
        return best
    pushed = _tightened(problem, right)
    if pushed.time < right.time and verify(pushed).ok:
        right = pushed
    return _least([best, right])


def _tightened(problem: Problem, algorithm: Algorithm) -> Algorithm:
    """The same rows pushed together, unless they use memory of which planners know nothing."""
    rows = algorithm.transfers
    if rows.src_place is not None or rows.dst_place is not None or rows.deps is not None:
        return algorithm
    slot = algorithm.chunks.largest
    pushed = Schedule.of(algorithm).tightened(problem.topology, problem.cost, slot)
    return timed(problem.cut(algorithm.demands), [pushed], str(algorithm.provenance["method"]))


def _least(plans: Sequence[Algorithm | None]) -> Algorithm | None:
    """The plan with the least time, the first of equals."""
    there = [plan for plan in plans if plan is not None]
    return min(there, key=lambda plan: plan.time, default=None)
