"""Which sizes to compare at: a range or a list."""

from __future__ import annotations

from weft.errors import InputError
from weft.quoting import quoted
from weft.units import parse_size

USUAL = "1KiB:1GiB"
MOST_SIZES = 64

_FACTOR = "4"
_MOST_FACTOR = 1 << 30


def parse_sizes(text: str) -> list[int]:
    """Bytes of sizes such as ``1KiB:1GiB``, ``1KiB:1GiB:2`` or ``64KiB,1MiB``, ascending.

    A range goes from the first size by a factor, 4 unless it is given, as far as the last.
    """
    sizes = _range(text) if ":" in text else sorted({parse_size(item) for item in text.split(",")})
    if len(sizes) > MOST_SIZES:
        raise InputError(f"sizes {quoted(text)} are {len(sizes)}; expected at most {MOST_SIZES}")
    return sizes


def _range(text: str) -> list[int]:
    first, last, *rest = text.split(":")
    if len(rest) > 1 or "," in text:
        raise InputError(
            f"sizes {quoted(text)} are neither a range nor a list; write them like 1KiB:1GiB, "
            "1KiB:1GiB:2 or 64KiB,1MiB"
        )
    size, most, factor = parse_size(first), parse_size(last), _factor(*rest)
    if size > most:
        raise InputError(f"sizes {quoted(text)} are reversed; write them like {last}:{first}")
    sizes = []
    while size <= most:
        sizes.append(size)
        size *= factor
    return sizes


def _factor(text: str = _FACTOR) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit() and 2 <= int(text[:30]) <= _MOST_FACTOR):
        raise InputError(f"factor {quoted(text)} between sizes; expected 2 to {_MOST_FACTOR}")
    return int(text)
