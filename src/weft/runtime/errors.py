"""What goes wrong among ranks that run together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from weft.errors import WeftError


class RunError(WeftError, RuntimeError):
    """A run failed on some rank: on all others it fails too, and its results count for nothing.

    Attributes
    ----------
    peer
        The rank with which something went wrong; -1 if none is known.
    row, chunk
        What was waited for; -1 if nothing in particular was.
    waits
        All that the rank waited for: ranks, rows and chunks.
    """

    def __init__(
        self,
        message: str,
        *,
        peer: int = -1,
        row: int = -1,
        chunk: int = -1,
        waits: Sequence[tuple[int, int, int]] = (),
    ) -> None:
        super().__init__(message)
        self.peer, self.row, self.chunk = peer, row, chunk
        self.waits = list(waits)
        self.told = False  # whether the other ranks know it

    def said(self) -> bytes:
        """As told to other ranks."""
        return msgspec.json.encode(
            [type(self).__name__, str(self), self.peer, self.row, self.chunk, self.waits]
        )


class LostError(RunError):
    """A rank ended, or its connection broke."""


class StalledError(RunError):
    """Nothing moved for as long as was allowed."""


class DisagreementError(RunError):
    """Ranks were asked for different things."""


_Said = tuple[str, str, int, int, int, list[tuple[int, int, int]]]
_KINDS: dict[str, type[RunError]] = {
    kind.__name__: kind for kind in (RunError, LostError, StalledError, DisagreementError)
}


def heard(said: bytes) -> RunError:
    """What another rank told."""
    try:
        found: tuple[Any, ...] = msgspec.json.decode(said, type=_Said)
    except msgspec.MsgspecError:
        found = ("", "a rank failed, and what it says makes no sense", -1, -1, -1, [])
    kind, words, peer, row, chunk, waits = found
    error = _KINDS.get(kind, RunError)(words, peer=peer, row=row, chunk=chunk, waits=waits)
    error.told = True
    return error
