"""The attributes of GlobalMetadata: how Weft writes numbers into them and finds them again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import InputError
from weft.formats.chakra.schema import BOOL_LIST, INT64, SINT64_LIST, TEXT

SCHEMA_VERSION = 2
READABLE_VERSIONS = (1, 2)

Int64 = NDArray[np.int64]
# What an attribute can hold: one value, or a list of them.
Value = int | float | bytes | Int64 | NDArray[np.float64] | list[bytes] | None
Attribute = tuple[str, int, Value]


def delta(values: NDArray[Any]) -> Int64:
    """Each value less the one before it: small numbers, which take few bytes. Wraps around."""
    steps: Int64 = values.astype(np.int64)
    steps[1:] -= steps[:-1].copy()
    return steps


def undelta(steps: Int64) -> Int64:
    return np.cumsum(steps, dtype=np.int64)


class Attributes:
    """Attributes by name. Every getter raises InputError where the value is not what it must be."""

    def __init__(self, found: list[tuple[bytes, int, Value]]) -> None:
        self._found = {name: (kind, value) for name, kind, value in found}
        if len(self._found) != len(found):
            raise InputError("an attribute is there twice")

    def __contains__(self, name: str) -> bool:
        return name.encode() in self._found

    def _get(self, name: str, kind: int) -> Any:
        found, value = self._found.get(name.encode(), (0, None))
        if found != kind:
            raise InputError(f"attribute {name} is missing or of another kind")
        return value

    def number(self, name: str) -> int:
        return int(self._get(name, INT64))

    def text(self, name: str) -> bytes:
        return bytes(self._get(name, TEXT))

    def column(self, name: str) -> Int64:
        """A column written by `delta`."""
        return undelta(self._get(name, SINT64_LIST))

    def flags(self, name: str) -> NDArray[np.bool_]:
        values: Int64 = self._get(name, BOOL_LIST)
        return values.astype(np.bool_)
