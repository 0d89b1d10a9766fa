"""Ctrl-C and SIGTERM: a word, the exit code of shells, and nothing left behind.

Imports next to nothing, since it must be at work before anything else is imported.
"""

from __future__ import annotations

import os
import signal
import sys

_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
_heeded = signal.SIGINT


def heed_termination() -> None:
    """Let SIGTERM, as of schedulers and ``timeout``, end the command as Ctrl-C does."""
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:  # ignored is ignored
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(_number: int, _frame: object) -> None:
    global _heeded
    _heeded = signal.SIGTERM
    raise KeyboardInterrupt


def ignore_more() -> None:
    """Let nothing more break off the way out."""
    for number in _WORDS:
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
    """End without waiting for threads that do not end."""
    os._exit(farewell())
