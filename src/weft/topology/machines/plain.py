"""Plain values of YAML and JSON, as far as a reader needs them: each checked, with its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.quoting import quoted
from weft.topology.machines.tree import Place

At = Sequence[str | int]


def mapping(value: Any, at: At, what: str) -> dict[str, Any]:
    """What has keys and values; `what` is what it is called."""
    if not isinstance(value, dict):
        raise Place(path=at).wrong(f"{what} is {quoted(value)}; expected keys and values")
    return value


def listing(value: Any, at: At) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        what = at[-1] if at else "the file"
        raise Place(path=at).wrong(f"{what} is {quoted(value)}; expected a list")
    return value


def called(item: dict[str, Any], key: str, at: At) -> str:
    """The name at a key."""
    if key not in item:
        raise Place(path=at).wrong(f"{key} is not there; expected a name")
    return name(item[key], (*at, key), key)


def name(value: Any, at: At, what: str) -> str:
    """A name, which YAML may take for a number."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise Place(path=at).wrong(f"{what} is {quoted(value)}; expected a name")
    return str(value)


def whole(item: dict[str, Any], key: str, at: At, most: int) -> int:
    """A whole number from 1 to `most`."""
    value = item.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise Place(path=(*at, key)).wrong(
            f"{key} is {quoted(value)}; expected a whole number from 1 to {most}"
        )
    return value
