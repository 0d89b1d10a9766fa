"""Plain values checked against typed records, with complaints in the words of the file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from weft.documents.places import PlacedError
from weft.quoting import MOST_QUOTED, brief, quoted

T = TypeVar("T")

_AT = re.compile(r"(.*?) - at `\$(.*)`", re.DOTALL)


@dataclass(frozen=True)
class Words:
    """How to speak of a kind of file.

    Attributes
    ----------
    records
        What may stand under a key of the file; "" is the top, or an item of a list there.
    items
        What an item of the list under a key is called, such as a link.
    """

    records: Mapping[str, type[msgspec.Struct]] = field(default_factory=dict)
    items: Mapping[str, str] = field(default_factory=dict)

    def name(self, path: list[str | int]) -> str:
        """The items on the way to a place: ``group 2: move 0``; empty if there are none."""
        named, key = [], ""
        for step in path:
            if isinstance(step, str):
                key = step
            elif key in self.items:
                named.append(f"{self.items[key]} {step}")
                key = "an item's"
        return ": ".join(named)

    def known(self, path: list[str | int]) -> tuple[str, ...]:
        """The keys that the record at a place may have."""
        key = next((step for step in reversed(path) if isinstance(step, str)), "")
        return self.records[key].__struct_encode_fields__


def explain(error: msgspec.ValidationError, words: Words) -> PlacedError:
    """Turn msgspec's complaint into ours, with the place it speaks of."""
    match = _AT.fullmatch(str(error))
    message, where = (match[1], match[2]) if match else (str(error), "")
    path: list[str | int] = [
        int(index) if index else key for key, index in re.findall(r"\.(\w+)|\[(\d+)\]", where)
    ]
    name = words.name(path)
    unknown = re.search(r"unknown field `(.*?)`", message)
    if unknown:
        known = words.known(path)
        near = difflib.get_close_matches(unknown[1][:MOST_QUOTED], known, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else f" (known: {', '.join(known)})"
        what = name or "the file"
        return PlacedError(
            f"{what} has an unknown key {quoted(unknown[1])}{hint}", [*path, unknown[1]]
        )
    missing = re.search(r"missing required field `(.*?)`", message)
    if missing:
        return PlacedError(f"{name or 'the file'} has no {brief(missing[1])}", path)
    # It may quote a value of any length.
    reason = brief(f"{message[0].lower()}{message[1:].replace('`', '')}", 200)
    return PlacedError(f"{_subject(name, path)} is wrong: {reason}", path)


def _subject(name: str, path: list[str | int]) -> str:
    """The item itself, or the key that is wrong in it."""
    key = next((step for step in reversed(path) if isinstance(step, str)), "")
    if name and name.endswith(f" {path[-1]}"):
        return name
    return ": ".join(part for part in (name, key) if part) or "the file"


def convert(value: Any, kind: type[T], words: Words) -> T:
    """Typed values, such as a record, from plain ones."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise explain(error, words) from None
