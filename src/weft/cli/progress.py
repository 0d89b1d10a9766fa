"""A progress bar for what takes over two seconds, and Ctrl-C that works while kernels run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from weft._core import Progress

T = TypeVar("T")

_PATIENCE_S = 2.0
_BEAT_S = 0.1


def run(title: str, work: Callable[[Progress], T]) -> T:
    """Do the work in a thread of its own; show how far it is once it has taken two seconds."""
    from weft._core import Progress

    progress = Progress()
    outcome: list[T] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(work(progress))
        except BaseException as error:
            failure.append(error)

    worker = threading.Thread(target=body, daemon=True)
    worker.start()
    try:
        worker.join(_PATIENCE_S)
        if worker.is_alive() and sys.stderr.isatty():
            _show(title, worker, progress)
        worker.join()
    except KeyboardInterrupt:
        progress.cancel()
        raise click.Abort from None
    if failure:
        raise failure[0]
    return outcome[0]


def _show(title: str, worker: threading.Thread, progress: Progress) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        while worker.is_alive():
            bar.update(task, completed=progress.done, total=progress.total or None)
            worker.join(_BEAT_S)
