"""Lines of the user's program, for messages."""

from __future__ import annotations

import sys
from pathlib import Path

from weft.errors import InputError

Line = tuple[str, int]
_ROOM = __name__.rpartition(".")[0]


def calling_line(callers: int) -> Line:
    """The line that is being run so many callers above the caller; quick, for every operation."""
    frame = sys._getframe(callers + 1)
    return frame.f_code.co_filename, frame.f_lineno


def wrong(sentence: str) -> InputError:
    """An error at the line of the user's program that is being run."""
    callers = 1
    while sys._getframe(callers).f_globals.get("__name__", "").startswith(_ROOM):
        callers += 1
    return InputError(f"{spelled(calling_line(callers))}: {sentence}")


def spelled(line: Line) -> str:
    """A line in words; the file without its folder, which a traceback shows anyway."""
    return f"{Path(line[0]).name}:{line[1]}"
