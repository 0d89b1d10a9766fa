"""Names of hosts: lists as Slurm writes them, ``node[01-16,20],login1``, and their order."""

from __future__ import annotations

import re
from itertools import product

from weft.errors import InputError
from weft.quoting import quoted

MOST = 1 << 18
"""Names in one list; more is no cluster."""
MAX_DIGITS = 18
_ITEM = re.compile(r"(?:[^\s,\[\]]+|\[[^\[\]]*\])+")
_RANGE = re.compile(r"\s*([0-9]+)(?:\s*-\s*([0-9]+))?\s*")


def names_of(text: str, most: int = MOST) -> list[str]:
    """All names of a list, in order.

    Raises
    ------
    InputError
        It is no list, or one of more than `most` names.
    """
    names: list[str] = []
    at = 0
    while at < len(text):
        match = _ITEM.match(text, at)
        if match is None or text[match.end() : match.end() + 1] not in ("", ","):
            raise InputError(
                f"{quoted(text)} is no list of names; expected such as node[01-16,20],login1"
            )
        names += _expanded(match[0], most - len(names))
        at = match.end() + 1
    if not names or text.endswith(","):
        raise InputError(f"{quoted(text)} is no list of names; expected such as node[01-16,20]")
    return names


def _expanded(item: str, most: int) -> list[str]:
    """The names of one item, such as ``rack[1-2]node[01-16]``."""
    pieces: list[list[range] | str] = []
    widths: list[list[int]] = []
    count = 1
    for piece in re.findall(r"\[[^\]]*\]|[^\[]+", item):
        ranges, width = _ranges(piece) if piece[0] == "[" else (None, [])
        pieces.append(piece if ranges is None else ranges)
        widths.append(width)
        # A range may have more numbers than `len` can say.
        count *= sum(r.stop - r.start for r in ranges) if ranges is not None else 1
    if count > most:
        raise InputError(
            f"{quoted(item)} makes a list of more than {MOST} names, the most there may be"
        )
    choices = [
        [piece]
        if isinstance(piece, str)
        else [f"{n:0{w}}" for r, w in zip(piece, width, strict=True) for n in r]
        for piece, width in zip(pieces, widths, strict=True)
    ]
    return ["".join(parts) for parts in product(*choices)]


def _ranges(text: str) -> tuple[list[range], list[int]]:
    """The numbers in brackets, and to how many digits they are filled."""
    ranges, widths = [], []
    for piece in text[1:-1].split(","):
        match = _RANGE.fullmatch(piece)
        first, last = match.groups(default="") if match else ("", "")
        last = last or first
        if not match or max(len(first), len(last)) > MAX_DIGITS or int(last) < int(first):
            raise InputError(
                f"{quoted(piece)} in {quoted(text)} is no range; expected such as 01-16 or 20"
            )
        ranges.append(range(int(first), int(last) + 1))
        widths.append(len(first))
    return ranges, widths


def natural(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """A key by which node2 comes before node10."""
    key = []
    for digits, text in re.findall(r"([0-9]+)|([^0-9]+)", name):
        whole = digits.lstrip("0")
        key.append((1, 0, text) if text else (0, len(whole), whole))
    return key, name
