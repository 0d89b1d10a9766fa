"""What Weft raises when something is wrong with what it was given.

WeftError                 base: the message is one clear sentence for the user (exit code 2)
├── PlannerError          a user's own planner does not do what one must
├── InputError            a value, a name or a file that makes no sense
│   ├── TopologyError     a network that is not one
│   └── FormatError       a file that cannot be read; names file and place
│       └── UnclearError  a file that can be read in several ways (exit code 3)
└── UnreachableError      a chunk cannot get from where it is to where it must be

A wrong algorithm is not an exception but a verdict: see `weft.verify`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from weft.quoting import MOST_QUOTED, quoted, sentence


class WeftError(Exception):
    """Base of all errors Weft raises on purpose."""

    def __init__(self, message: str) -> None:
        super().__init__(sentence(message))


class InputError(WeftError):
    """A value, a name or a file that makes no sense."""


class TopologyError(InputError):
    """A network that is not one."""


class FormatError(InputError):
    """A file that cannot be read; the message names the file and the place."""


class UnclearError(FormatError):
    """A file that can be read in several ways, none of which was found to be right.

    It may be right nevertheless: the message says what would have to be known.
    """


class PlannerError(WeftError):
    """A planner that is not Weft's own fails, or plans something else than it is asked for."""


class UnreachableError(WeftError):
    """A chunk cannot get from where it is to where it must be."""


def unknown_name(what: str, found: str, known: Iterable[str]) -> InputError:
    """Say that `found` is not a known `what`, and suggest the nearest known name."""
    names = sorted(known)
    # Nothing is near a long text, and to compare it takes its length times those of all names.
    near = difflib.get_close_matches(found[:MOST_QUOTED].lower(), names, n=1, cutoff=0.5)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return InputError(f"unknown {what} {quoted(found)}{hint} (known: {', '.join(names)})")
