"""What a planner is, and the one table of them: Weft's own, classical ones, users' own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar

from weft import _core
from weft.algorithm import Algorithm
from weft.engine import simulate
from weft.errors import PlannerError, WeftError
from weft.planners.chunking import Option, climb, leaves_a_gap, options
from weft.planners.problem import AUTO, Problem
from weft.registry import Registry

P = ParamSpec("P")
T = TypeVar("T")

PLANNERS: Registry[Planner] = Registry(
    "method",
    "weft.planners.methods",
    "weft.classical",
    entry_points="weft.planners",
    reserved=(AUTO, "weft"),  # the second heads a column of comparisons
)


class Planner(ABC):
    """A way to plan collectives. To add one, write a subclass and pass it to `weft.register`.

    Only `name`, `fits` and `plan` must be written. The portfolio asks the planners that fit in
    order of `rank`, keeps the plan with the least exact time, and stops once none can be better.

    Attributes
    ----------
    name
        What ``--method`` and `Algorithm.provenance` call it.
    summary
        What it does, in a few words.
    rank
        Planners of lower ranks come first. Weft's own have 10 to 90, classical ones 200 and more.
    beside
        Whether `weft.compare` shows it beside Weft's answer.
    judged
        Whether the judge must accept a plan before it may win. The answer is judged in any case.
    seeded
        Whether another seed may give another plan, so that each trial asks it again.
    keeps_apart
        Whether its plans keep copies in other places than where chunks belong.
    uses_switches
        Whether its plans can let switches copy or add. Weft's own others are asked on the network
        with switches that only forward, which loses them nothing.
    side_by_side
        Whether it runs on a thread of its own beside its neighbours in the table that say so too.
    """

    table: ClassVar[Registry[Any]] = PLANNERS
    name: str
    summary: str = ""
    rank: int = 100
    beside: bool = True
    judged: bool = True
    seeded: bool = True
    keeps_apart: bool = False
    uses_switches: bool = False
    side_by_side: bool = False

    @abstractmethod
    def fits(self, problem: Problem) -> str | None:
        """Why it cannot plan this, such as "plans networks without switches"; None if it can."""

    @abstractmethod
    def plan(self, problem: Problem) -> Algorithm:
        """Plan the problem with the chunks it has.

        The algorithm is for ``problem.demands`` on ``problem.topology``, under ``problem.cost``;
        one without times gets those of a simulation (see `weft.engine`).

        Say what is done with ``problem.say``, count with ``problem.progress``, and call
        ``problem.progress.check()`` now and then: it raises if the user gave up.

        Raises
        ------
        InputError
            It cannot after all.
        UnreachableError
            Some chunk has no path to where it must go.
        """

    def plans_alike(self, problem: Problem) -> bool:  # noqa: ARG002
        """Whether it has a plan in which all NPUs do the same at once, for which none is listed."""
        return False

    def turn(self, problem: Problem) -> int:  # noqa: ARG002 - for those to whom it matters
        """When it is asked: by its rank, unless another order saves work."""
        return self.rank

    def floor(self, problem: Problem) -> int:
        """Picoseconds that no plan of this planner can beat; by default what none at all can."""
        return problem.bound

    def is_worth_trying(self, problem: Problem, best: Algorithm | None) -> bool:
        """Whether ``auto`` should ask for a plan with these chunks, given the best so far."""
        return best is None or self.floor(problem) < best.time

    def can_improve(self, problem: Problem, best: Algorithm) -> bool:
        """Whether a plan with any number of chunks may take less time than the best so far."""
        return leaves_a_gap(problem, best.time)

    def rivals(self, problem: Problem, best: Algorithm, other: Planner) -> bool:  # noqa: ARG002
        """Whether another planner of Weft's own should still be asked, after this one was.

        `best` is the best plan so far.
        """
        return True

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:
        """The best plan over numbers of chunks, where they are free; None if none may be better."""

        def plan(option: Problem) -> Algorithm | None:
            if option.is_auto and not self.is_worth_trying(option, best):
                return None
            made = self.plan(option)
            if not isinstance(made, Algorithm):
                raise TypeError(f"plan gives {type(made).__name__}, not an Algorithm")
            return made if made.timed else simulate(made, option.topology, option.cost).timed()

        return climb(self.options(problem), plan, best)

    def options(self, problem: Problem) -> list[Option]:
        """The numbers of chunks that `search` may try."""
        return options(problem)

    def rows(self, problem: Problem) -> int:  # noqa: ARG002 - for those who can tell
        """About how many transfers a plan has; 0 if that is not known beforehand."""
        return 0


def guarded(planner: Planner, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a call of a planner gives; of others' planners, errors that explain nothing are named.

    Raises
    ------
    PlannerError
        The planner, which is not Weft's own, raises something that is no `WeftError`.
    """
    try:
        return call(*args, **kwargs)
    except (WeftError, _core.Cancelled, MemoryError):
        raise
    except Exception as error:
        if not planner.judged:
            raise
        what = f"method {planner.name} fails with {type(error).__name__}: {error}"
        raise PlannerError(f"{what}; repair it, or take it out of the table") from error


def add(*planners: Planner) -> None:
    """Put planners in the table."""
    for planner in planners:
        PLANNERS.add(planner.name, planner, rank=planner.rank)


def method_names() -> tuple[str, ...]:
    """What ``--method`` takes: ``auto``, and the name of every planner."""
    return (AUTO, *PLANNERS)


def is_file(method: str) -> bool:
    """Whether a method is a file or a folder of traces; names of methods have no dots."""
    return method not in method_names() and (
        "/" in method or "." in method or Path(method).exists()
    )
