"""One way in for collectives of all kinds, as the command line and plan files ask for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from weft.collective.custom import Move, all_to_allv, custom, permutation
from weft.collective.model import DEFAULT_ALIGNMENT, Collective
from weft.collective.patterns import PATTERNS
from weft.errors import InputError, unknown_name
from weft.quoting import quoted
from weft.units import parse_size

_TOLD = {"all-to-allv": ("matrix",), "permutation": ("size", "to"), "custom": ("moves",)}
_BY_NAME = ("size",)  # what patterns need whose name says what moves
_ALL = ("size", "matrix", "to", "moves")


@dataclass(frozen=True)
class Plan:
    """Collectives that run at the same time.

    Attributes
    ----------
    collectives
        What `weft.synthesize` takes.
    chunks
        For each the number of chunks, or None if it is to be chosen: its ``chunks``.
    """

    collectives: list[Collective]
    chunks: list[int | None]


@dataclass(frozen=True)
class Request:
    """What is asked for, before it is known for which group.

    Attributes
    ----------
    kind
        Name of the pattern, a key of `PATTERNS`.
    size
        Bytes or a text such as ``64MiB``; All-to-Allv and custom patterns have none.
    root
        For rooted patterns; by default the group's first NPU.
    relay
        Whether NPUs outside the group may pass chunks on.
    matrix
        For All-to-Allv: bytes from each rank to each.
    to
        For a permutation: the rank that each rank sends to.
    moves
        For a custom pattern: what moves.
    """

    kind: str
    size: str | float | None = None
    root: int | None = None
    relay: bool = True
    matrix: ArrayLike | None = None
    to: Sequence[int] | None = None
    moves: Sequence[Move] | None = None

    def among(self, group: Sequence[int], alignment: int = DEFAULT_ALIGNMENT) -> Collective:
        """The collective of one group."""
        given = [name for name in _ALL if getattr(self, name) is not None]
        check_given(self.kind, given)
        if self.root is not None and not PATTERNS[self.kind].rooted:
            raise InputError(f"{self.kind} has no root, but root {self.root} was given")
        if self.matrix is not None:
            return all_to_allv(group, self.matrix, alignment=alignment, relay=self.relay)
        if self.moves is not None:
            return custom(group, self.moves, alignment=alignment, relay=self.relay)
        assert self.size is not None
        size = parse_size(self.size)
        if self.to is not None:
            return permutation(group, size, self.to, alignment=alignment, relay=self.relay)
        return Collective.of(self.kind, group, size, 1, self.root, alignment, self.relay)


def takes_size(kind: str) -> bool:
    """Whether a collective of this name needs a size."""
    return "size" in _TOLD.get(kind, _BY_NAME)


def check_given(
    kind: str, given: Collection[str], spelled: Mapping[str, str] | None = None
) -> None:
    """Raise if a collective is given too few of size, matrix, to and moves, or too many.

    Parameters
    ----------
    spelled
        What these are called where the user gives them, if not by their names.
    """
    if kind not in PATTERNS:
        raise unknown_name("collective", kind, PATTERNS)
    needed = _TOLD.get(kind, _BY_NAME)
    names = spelled or {}
    wanted = " and ".join(names.get(name, name) for name in needed)
    for name in given:
        if name not in needed:
            raise InputError(f"{kind} takes no {names.get(name, name)}, only {wanted}")
    if len(given) < len(needed):
        raise InputError(f"{kind} needs {wanted}")


def parse_chunks(text: str) -> int | None:
    """A number of chunks, or None for ``auto``."""
    if text == "auto":
        return None
    if not text.isascii() or not text.isdigit():
        raise InputError(f"chunks is {quoted(text)}; expected a whole number or auto")
    return int(text[:30])  # enough digits to be refused; Python would refuse thousands itself
