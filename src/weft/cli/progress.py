"""What takes over two seconds says what it does and how far; interrupts work meanwhile."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, TypeVar

from weft.cli.interrupts import ignore_more, leave_at_once

if TYPE_CHECKING:
    from weft.progress import Progress, Tracker

T = TypeVar("T")

_PATIENCE_S = 2.0
_ALMOST = 0.99  # a stage that still runs is not done
_GRACE_S = 3.0  # for interrupted work to clear up


def run(title: str, work: Callable[[Tracker], T]) -> T:
    """Do the work; show how far it is once it has taken two seconds.

    The title stands where the work names neither a step nor a phase.
    """
    from weft import progress

    try:
        with ExitStack() as screen:
            return progress.run(work, _Bar(title, screen).show)
    except KeyboardInterrupt:
        ignore_more()
        if not progress.all_ended(_GRACE_S):
            # A kernel that comes back to an interpreter on its way out would bring it down.
            leave_at_once()
        raise


class Sight:
    """What is shown of a progress: never less of a stage than before, and all only at its end."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._seen: tuple[str, int] = ("", 0)
        self._share = 0.0

    def look(self, progress: Progress) -> tuple[str, float | None]:
        """The words, and which share of the stage is done; None while nobody knows."""
        words = ": ".join(filter(None, (progress.step, progress.phase))) or self._title
        if self._seen != (words, progress.stage):
            self._seen, self._share = (words, progress.stage), 0.0
        if progress.total <= 0:
            return words, None
        self._share = max(self._share, min(progress.done / progress.total, _ALMOST))
        return words if progress.stage < 2 else f"{words}, stage {progress.stage}", self._share


class _Bar:
    """A bar on the terminal, if there is one, from the moment on when patience ends."""

    def __init__(self, title: str, screen: ExitStack) -> None:
        self._sight, self._screen = Sight(title), screen
        self._due = time.monotonic() + _PATIENCE_S if sys.stderr.isatty() else float("inf")
        self._update: Callable[[str, float | None], None] | None = None

    def show(self, progress: Progress) -> None:
        if time.monotonic() < self._due:
            return
        if self._update is None:
            self._update = lambda _words, _share: None
            with suppress(RuntimeError):  # the bar has a thread too
                self._update = self._begun()
        self._update(*self._sight.look(progress))

    def _begun(self) -> Callable[[str, float | None], None]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        from weft.quoting import sentence

        # No time left: a search ends when it finds nothing better, and nobody knows when that is.
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[percent]:>4}"),
            TimeElapsedColumn(),
        )
        bar = Progress(*columns, console=Console(stderr=True), transient=True)
        task = bar.add_task("", total=None, percent="")
        self._screen.enter_context(bar)

        def update(words: str, share: float | None) -> None:
            known, percent = (None, "") if share is None else (1.0, f"{share:.0%}")
            text = sentence(words)
            bar.update(task, description=text, completed=share or 0, total=known, percent=percent)

        return update
