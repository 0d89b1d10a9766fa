"""A progress bar for what takes over two seconds, and Ctrl-C that works while kernels run."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from weft._core import Progress

INTERRUPTED = 130  # the exit code of shells

T = TypeVar("T")

_PATIENCE_S = 2.0
_BEAT_S = 0.1
_GRACE_S = 1.0  # for the work to see that it is no longer wanted


def run(title: str | Callable[[], str], work: Callable[[Progress], T]) -> T:
    """Do the work in a thread of its own; show how far it is once it has taken two seconds.

    A title that changes is asked for time and again.
    """
    from weft._core import Progress

    progress = Progress()
    outcome: list[T] = []
    failure: list[BaseException] = []
    ended = threading.Event()  # a thread's own `join` forgets it when interrupted

    def body() -> None:
        try:
            outcome.append(work(progress))
        except BaseException as error:
            failure.append(error)
        finally:
            ended.set()

    threading.Thread(target=body, daemon=True).start()
    try:
        if not ended.wait(_PATIENCE_S) and sys.stderr.isatty():
            _show(title if callable(title) else lambda: title, ended, progress)
        ended.wait()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would break off the way out
        progress.cancel()
        if not ended.wait(_GRACE_S):
            # A kernel that comes back to an interpreter on its way out would bring it down.
            os._exit(INTERRUPTED)
        raise click.Abort from None
    if failure:
        raise failure[0]
    return outcome[0]


def _show(title: Callable[[], str], ended: threading.Event, progress: Progress) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from weft.quoting import sentence

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(sentence(title()), total=None)
        while not ended.wait(_BEAT_S):
            total = progress.total or None
            bar.update(task, completed=progress.done, total=total, description=sentence(title()))
