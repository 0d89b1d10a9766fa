"""Judges of the kinds of rows: each module here adds its own.

Rows are judged by what they hold, not by what they say of themselves: a judge is only handed rows
of the very class it knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from weft import _core
from weft.algorithm import Algorithm, Rows
from weft.judge.verdict import Verdict
from weft.registry import Registry

J = TypeVar("J", bound=Callable[..., Verdict])
Progress = _core.Progress | None

JUDGES: Registry[Callable[[Algorithm, Progress], Verdict]] = Registry(
    "kind of rows", "weft.judge.kinds"
)


def judges(rows_class: type[Rows]) -> Callable[[J], J]:
    """Decorator: the function judges algorithms whose rows are of this class."""

    def added(judge: J) -> J:
        def judged(algorithm: Algorithm, progress: Progress) -> Verdict:
            rows = algorithm.rows
            if type(rows) is not rows_class:
                text = f"rows of the kind {rows_class.kind} are not of {type(rows).__name__}"
                return Verdict(False, text, "structure")
            return judge(algorithm, rows, progress)

        JUDGES.add(rows_class.kind, judged)
        return judge

    return added
