"""Long calls: how far they are, and how to end them with Ctrl-C.

Kernels do not see signals. So a long call does its work in a thread of its own, while the calling
thread waits, tells a hook how far the work is, and is there when somebody presses Ctrl-C.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from weft import _core
from weft.threads import STARTING

P = ParamSpec("P")
T = TypeVar("T")

_BEAT_S = 0.1  # between two calls of a hook
_GRACE_S = 0.7  # for the work to see that it is no longer wanted, and to clear up


class Progress(NamedTuple):
    """How far a long call is.

    Attributes
    ----------
    phase
        What is being done, such as ``verifying``; empty before the first phase has begun.
    stage
        Phases have stages, one after the other: 1 is the first, 0 none yet.
    done, total
        How much of the stage is done, and of how much; the total is 0 while nobody knows.
    step
        Where many things are done one after the other: which of them, such as
        ``3 of 20: ring at 1MiB``; otherwise empty.
    """

    phase: str
    stage: int
    done: int
    total: int
    step: str = ""


class Tracker(_core.Progress):
    """What a piece of work counts up as it goes on; kernels take it for the core's own."""

    step = ""

    def begin_step(self, step: str) -> None:
        """Say which of many things is done next; raises Cancelled if it is not wanted."""
        self.step = step
        self.enter("")

    def now(self) -> Progress:
        """How far the work is."""
        return Progress(self.phase, self.stage, self.done, self.total, self.step)


ProgressHook = Callable[[Progress], None]
"""Is called some ten times a second by the thread that waits; what it raises ends the work."""

_current = threading.local()  # the progress of the work that this thread does
_workers: set[_Worker[Any]] = set()  # at work, also those that nobody waits for any more


def run(work: Callable[[Tracker], T], progress: ProgressHook | Tracker | None = None) -> T:
    """Do the work so that an interrupt ends it, and tell a hook how far it is.

    Parameters
    ----------
    work
        What to do; it hands the progress that it gets to all kernels.
    progress
        A hook, called at least once; or the tracker of a caller who is waiting already, in whose
        thread the work is then done, as it is if this thread is at work for `run` itself.

    An interrupt, or what the hook raises, cancels the work and is raised within a second: if a
    kernel does not see that it is cancelled, its thread is left to end by itself. The interpreter
    waits for it before it exits.
    """
    if isinstance(progress, Tracker):
        return work(progress)
    outer: Tracker | None = getattr(_current, "progress", None)
    if outer is not None and progress is None:
        return work(outer)
    if progress is None and threading.current_thread() is not threading.main_thread():
        return work(Tracker())  # no interrupt comes here
    return _Worker(work).wait(progress or _nobody)


def interruptible(call: Callable[P, T]) -> Callable[P, T]:
    """A function that `run` does: Ctrl-C ends it although a kernel does its work."""

    @functools.wraps(call)
    def running(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(lambda _: call(*args, **kwargs))

    return running


def all_ended(timeout_s: float) -> bool:
    """Wait for work that was left to end by itself; says whether all of it has ended."""
    return all(worker.ended.wait(timeout_s) for worker in list(_workers))


def _nobody(_: Progress) -> None:
    """The hook of those who gave none."""


class _Worker(Generic[T]):
    """One piece of work in a thread of its own."""

    def __init__(self, work: Callable[[Tracker], T]) -> None:
        self._work = work
        self._progress = Tracker()
        self._outcome: list[T] = []
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        self._may_be_interrupted = True
        self.ended = threading.Event()  # a thread's own `join` forgets it when interrupted
        self._thread = threading.Thread(target=self._body, name="weft")

    def wait(self, hook: ProgressHook) -> T:
        """Begin the work, wait for its end, and give what came of it."""
        try:
            try:
                _workers.add(self)
                self._thread.start()
            except RuntimeError:  # no thread to be had: then no interrupt either
                self._body()
            while not self.ended.wait(_BEAT_S):
                hook(self._progress.now())
            hook(self._progress.now())
        except BaseException:
            self._progress.cancel()
            self._interrupt()
            self.ended.wait(_GRACE_S)
            raise
        if self._failure is not None:
            try:
                raise self._failure
            finally:
                self._failure = None  # or its frames would hold on to it
        return self._outcome[0]

    def _body(self) -> None:
        try:
            _core.prepare_thread()
            _current.progress = self._progress
            try:
                self._progress.check()
                self._outcome.append(self._work(self._progress))
            except BaseException as error:
                self._failure = error
            with self._lock:
                self._may_be_interrupted = False
        except KeyboardInterrupt as error:  # when nothing was left to do
            self._failure = error
        finally:
            del _current.progress
            _workers.discard(self)
            self.ended.set()

    def _interrupt(self) -> None:
        """Raise an interrupt in the thread, so that loops in Python end and clear up."""
        with STARTING, self._lock:
            if self._may_be_interrupted and self._thread.ident is not None:
                number = ctypes.c_ulong(self._thread.ident)
                interrupt = ctypes.py_object(KeyboardInterrupt)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(number, interrupt)
