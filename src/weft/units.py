"""Sizes, rates and times with units: read what people write, print what they can read.

Inside Weft a size is an integer number of bytes, a bandwidth an integer number of bytes per
second and a time an integer number of picoseconds. Units appear only at the edges, here.
"""

from __future__ import annotations

import re
from fractions import Fraction

from weft.errors import InputError
from weft.quoting import quoted

PS_PER_NS = 1_000
PS_PER_US = 1_000_000
PS_PER_S = 10**12
NEVER = 2**63 - 1  # the end of the clock, in picoseconds
CLOCK_PS = 1 << 62  # times stay below, so that sums of two fit

MAX_BYTES = 1 << 60
MAX_BANDWIDTH = 10**18
MAX_LATENCY_PS = 10**18
MAX_FLOPS = 10**21

_DIGITS = "[0-9]{1,99}"  # more say nothing, and Python refuses thousands with a traceback
_NUMBER = re.compile(
    rf"\s*([+-]?(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?[0-9]{{1,3}})?)\s*(\S*)\s*"
)
_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY = {f"{p}i": 1 << (10 * (i + 1)) for i, p in enumerate("kmgtp")}
_PREFIXES = _DECIMAL | _BINARY
_TIMES = {"ps": 1, "ns": 10**3, "us": 10**6, "µs": 10**6, "μs": 10**6, "ms": 10**9, "s": 10**12}


def parse_size(text: str | float, *, or_zero: bool = False) -> int:
    """Bytes of a size such as ``64MiB``, ``1GB`` or ``4096``; nothing at all only if asked."""
    value, unit = _split(text, "size", "64MiB")
    if unit.lower().endswith("b"):
        unit = unit[:-1]
    size = value * _prefix(unit, text, "size", "64MiB")
    return 0 if or_zero and size == 0 else _whole(size, text, "size", MAX_BYTES)


def parse_buffer(text: str | int) -> int:
    """Bytes of a buffer: a size, or ``0``."""
    value, _ = _split(text, "buffer", "64KiB")
    return parse_size(text) if value else 0


def parse_bandwidth(text: str) -> int:
    """Bytes per second of a rate such as ``50GB/s``, ``50GiB/s`` or ``400Gbps``."""
    value, unit = _split(text, "bandwidth", "50GB/s")
    match = re.fullmatch(r"([kKmMgGtTpP]?i?)(B/s|Bps|b/s|bps|bit/s)", unit)
    if not match:
        raise InputError(f"bandwidth {quoted(text)} has no unit Weft knows; write it like 50GB/s")
    rate = value * _prefix(match[1], text, "bandwidth", "50GB/s")
    if match[2].startswith("b"):
        rate /= 8
    return _whole(rate, text, "bandwidth", MAX_BANDWIDTH)


def parse_latency(text: str, what: str = "latency") -> int:
    """Picoseconds of a time such as ``0.5us`` or ``500ns``; ``0`` needs no unit."""
    value, unit = _split(text, what, "0.5us")
    if not unit and value == 0:
        return 0
    if unit not in _TIMES:
        raise InputError(f"{what} {quoted(text)} has no unit Weft knows; write it like 0.5us")
    time = round(value * _TIMES[unit])
    if not 0 <= time <= MAX_LATENCY_PS:
        raise InputError(f"{what} {quoted(text)} is out of range; expected 0 to 11 days")
    return time


def parse_flops(text: str) -> int:
    """Operations per second of a rate such as ``100TFLOP/s`` or ``1.5PFLOPS``."""
    value, unit = _split(text, "rate", "100TFLOP/s")
    match = re.fullmatch(r"([kKmMgGtTpP]?)(?:FLOP/s|FLOPS|FLOPs)", unit)
    if not match:
        raise InputError(f"rate {quoted(text)} has no unit Weft knows; write it like 100TFLOP/s")
    return _whole(value * _DECIMAL[match[1].lower()], text, "rate", MAX_FLOPS)


def parse_share(text: str | float) -> Fraction:
    """A positive factor such as ``50%`` or ``0.5``."""
    value, unit = _split(text, "share", "50%")
    if unit not in ("", "%") or value <= 0:
        raise InputError(f"share {quoted(text)} is not more than 0; write it like 50% or 0.5")
    return value / 100 if unit else value


def _split(text: str | float, what: str, example: str) -> tuple[Fraction, str]:
    match = _NUMBER.fullmatch(str(text))
    if not match:
        raise InputError(
            f"{what} {quoted(text)} is not a number with a unit; write it like {example}"
        )
    return Fraction(match[1]), match[2]


def _prefix(prefix: str, text: str | float, what: str, example: str) -> int:
    try:
        return _PREFIXES[prefix.lower()]
    except KeyError:
        raise InputError(
            f"{what} {quoted(text)} has no unit Weft knows; write it like {example}"
        ) from None


def _whole(value: Fraction, text: str | float, what: str, most: int) -> int:
    number = round(value)
    if not 0 < number <= most:
        raise InputError(
            f"{what} {quoted(text)} is out of range; expected more than 0, at most {most}"
        )
    return number


def format_size(size: int) -> str:
    """``1GiB``, ``1.5MiB``, ``1000B``: binary units, as few digits as are exact or useful."""
    for i, unit in ((5, "PiB"), (4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        power = 1 << 10 * i
        if size >= power:
            return f"{size / power:.4g}{unit}"
    return f"{size}B"


def format_bandwidth(rate: float) -> str:
    """Bytes per second in ``GB/s`` (10^9), the unit of nccl-tests."""
    for power, unit in ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        if rate >= power:
            return f"{rate / power:.4g}{unit}"
    return f"{rate:.4g}B/s"


def format_time(time_ps: float) -> str:
    """Picoseconds as ``3.1us``, ``9.606ms``, ``1.2s``."""
    for power, unit in ((1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns")):
        if time_ps >= power:
            return f"{time_ps / power:.6g}{unit}"
    return f"{time_ps:.0f}ps"


def format_share(share: Fraction) -> str:
    """A factor in percent."""
    return f"{float(share * 100):.6g}%"


def exact_size(size: int) -> str:
    """A size that `parse_buffer` reads back to the same integer, for files."""
    for power, unit in ((1 << 20, "MiB"), (1 << 10, "KiB"), (10**6, "MB"), (10**3, "kB")):
        if size and size % power == 0:
            return f"{size // power}{unit}"
    return f"{size}B"


def exact_bandwidth(rate: int) -> str:
    """A rate that `parse_bandwidth` reads back to the same integer, for files."""
    for power, unit in ((1 << 30, "GiB/s"), (10**9, "GB/s"), (10**6, "MB/s")):
        if rate % power == 0:
            return f"{rate // power}{unit}"
    return f"{rate}B/s"


def exact_latency(time_ps: int) -> str:
    """A time that `parse_latency` reads back to the same integer, for files."""
    for power, unit in ((10**6, "us"), (10**3, "ns")):
        if time_ps % power == 0:
            return f"{time_ps // power}{unit}"
    return f"{time_ps}ps"
