"""Ctrl-C and SIGTERM: a word, the exit code of shells, and nothing left behind.

Imports next to nothing, since it must be at work before anything else is imported.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
_SOON_S = 0.001
_heeded = signal.SIGINT


def heed_termination() -> None:
    """Let Ctrl-C, and SIGTERM as of schedulers and ``timeout``, end the command."""
    for number in _WORDS:
        # What is ignored stays so.
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    global _heeded
    if number in _WORDS:
        _heeded = signal.Signals(number)
    if not _imports(frame):
        raise KeyboardInterrupt
    # Modules in C may abort, and locks be lost, if an exception comes now.
    if threading.active_count() == 1:
        leave_at_once()
    signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, _SOON_S)


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def ignore_more() -> None:
    """Let nothing more break off the way out."""
    for number in (*_WORDS, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)


def farewell() -> int:
    """Say what ended the command; gives the exit code."""
    ignore_more()
    try:
        sys.stderr.write(f"weft: {_WORDS[_heeded]}\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody listens
    return 128 + _heeded


def leave_at_once() -> None:
    """End without waiting for anything: threads that do not end, or an import."""
    os._exit(farewell())
