"""What takes over two seconds says what it does and how far; interrupts work meanwhile."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from weft.cli.interrupts import ignore_more, leave_at_once

if TYPE_CHECKING:
    from weft._core import Progress

T = TypeVar("T")

_PATIENCE_S = 2.0
_BEAT_S = 0.1
_ALMOST = 0.99  # a stage that still runs is not done
_GRACE_S = 3.0  # for the work to see that it is no longer wanted, and to clear up


def run(title: str | Callable[[], str], work: Callable[[Progress], T]) -> T:
    """Do the work in a thread of its own; show how far it is once it has taken two seconds.

    A title that changes is asked for time and again, and stands before the phase that the work
    is in; another only stands where the work names none.
    """
    from weft._core import Progress, prepare_thread

    progress = Progress()
    outcome: list[T] = []
    failure: list[BaseException] = []
    ended = threading.Event()  # a thread's own `join` forgets it when interrupted

    def body() -> None:
        try:
            prepare_thread()
            outcome.append(work(progress))
        except BaseException as error:
            failure.append(error)
        finally:
            ended.set()

    worker = threading.Thread(target=body, daemon=True)
    try:
        try:
            worker.start()
        except RuntimeError:  # no threads to be had: then without a bar
            ended.set()
            return work(progress)
        if not ended.wait(_PATIENCE_S) and sys.stderr.isatty():
            with suppress(RuntimeError):  # the bar has a thread too
                _show(title, ended, progress)
        ended.wait()
    except KeyboardInterrupt:
        ignore_more()
        progress.cancel()
        _interrupt(worker)
        if not ended.wait(_GRACE_S):
            # A kernel that comes back to an interpreter on its way out would bring it down.
            leave_at_once()
        raise
    if failure:
        raise failure[0]
    return outcome[0]


def _interrupt(thread: threading.Thread) -> None:
    """Raise an interrupt in a thread, so that it clears up what it has begun to write."""
    threading.excepthook = lambda _: None  # it may come when the thread has nothing left to do
    number = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(KeyboardInterrupt))


class Sight:
    """What is shown of a progress: never less of a stage than before, and all only at its end."""

    def __init__(self, title: str | Callable[[], str], progress: Progress) -> None:
        self._title, self._progress = title, progress
        self._seen: tuple[str, int] = ("", 0)
        self._share = 0.0

    def look(self) -> tuple[str, float | None]:
        """The words, and which share of the stage is done; None while nobody knows."""
        words, stage = self._words(), self._progress.stage
        if self._seen != (words, stage):
            self._seen, self._share = (words, stage), 0.0
        total = self._progress.total
        if total <= 0:
            return words, None
        self._share = max(self._share, min(self._progress.done / total, _ALMOST))
        return words if stage < 2 else f"{words}, stage {stage}", self._share

    def _words(self) -> str:
        phase = self._progress.phase
        if not callable(self._title):
            return phase or self._title
        return f"{self._title()}: {phase}" if phase else self._title()


def _show(title: str | Callable[[], str], ended: threading.Event, progress: Progress) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    from weft.quoting import sentence

    # No time left: a search ends when it finds nothing better, and nobody knows when that is.
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[percent]:>4}"),
        TimeElapsedColumn(),
    )
    sight = Sight(title, progress)
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, percent="")
        while not ended.wait(_BEAT_S):
            words, share = sight.look()
            percent = "" if share is None else f"{share:.0%}"
            known = None if share is None else 1.0
            bar.update(
                task,
                description=sentence(words),
                completed=share or 0,
                total=known,
                percent=percent,
            )


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say what this thread itself does, where somebody is looking."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
