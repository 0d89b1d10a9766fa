"""What goes wrong among ranks that run together."""

from __future__ import annotations

from weft.errors import WeftError


class RunError(WeftError, RuntimeError):
    """A run failed on some rank: on all others it fails too, and its results count for nothing.

    Attributes
    ----------
    peer
        The rank with which something went wrong; -1 if none is known.
    row, chunk
        What was waited for; -1 if nothing in particular was.
    """

    def __init__(self, message: str, *, peer: int = -1, row: int = -1, chunk: int = -1) -> None:
        super().__init__(message)
        self.peer, self.row, self.chunk = peer, row, chunk


class LostError(RunError):
    """A rank ended, or its connection broke."""


class StalledError(RunError):
    """Nothing moved for as long as was allowed."""


class DisagreementError(RunError):
    """Ranks were asked for different things."""
