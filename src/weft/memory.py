"""How much memory there is, and what needs more than that: refused before it begins."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from weft.errors import InputError
from weft.units import format_size

_TABLE_BYTES_A_ROW = 120  # seven columns, and as much again while they are made and judged
_MEMINFO = Path("/proc/meminfo")
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def available() -> int:
    """Bytes this process may still take without pushing others out."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        lines = dict(line.split(":") for line in _MEMINFO.read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass  # not Linux: what is there at all must do
    for path in _LIMITS:
        try:
            free = min(free, int(Path(path).read_text()))
        except (OSError, ValueError):
            continue  # no such limit
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return free if soft == resource.RLIM_INFINITY else min(free, soft)


def check_fits(what: str, needed: int) -> None:
    """Raise, before it begins, if `what` needs more bytes than there are."""
    free = available()
    if needed > free:
        raise InputError(
            f"{what} needs about {format_size(needed)} of memory, but {format_size(free)} is free"
        )


def fits_table(rows: int) -> bool:
    """Whether a table of so many transfers fits in memory, with room to work on it."""
    return rows * _TABLE_BYTES_A_ROW <= available()


def check_table(rows: int) -> None:
    """Raise if so many transfers cannot be listed in a table."""
    check_fits(f"a table of {rows:,} transfers", rows * _TABLE_BYTES_A_ROW)
