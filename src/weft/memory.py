"""How much memory there is, and what needs more than that: refused before it begins."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weft.errors import InputError
from weft.units import format_size

_TABLE_BYTES_A_ROW = 120  # seven columns, and as much again while they are made and judged
_LITTLE = 1 << 20  # bytes that a process which runs always gets
_ROOT = Path("/")
_LIMITS = ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData"))


@dataclass(frozen=True)
class _Controller:
    """How a version of cgroups names what is allowed and what is used.

    Attributes
    ----------
    limits, usage
        Files of bytes; where there is no limit, a word or a huge number.
    cache
        Keys of ``memory.stat``, descendants included: pages of files, which the kernel takes back
        when memory runs short.
    """

    limits: tuple[str, ...]
    usage: str
    cache: tuple[str, ...]


_V1 = _Controller(
    ("memory.limit_in_bytes",),
    "memory.usage_in_bytes",
    ("total_inactive_file", "total_active_file"),
)
_V2 = _Controller(("memory.max", "memory.high"), "memory.current", ("inactive_file", "active_file"))


def available() -> int:
    """Bytes this process may still take without pushing others out, or being ended for it.

    What the machine has free, what each of the process's cgroups leaves, and what its own limits
    leave of what it does not use yet: the least of these.
    """
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")  # at most, and not on Linux
    free = _kibibytes("proc/meminfo").get("MemAvailable", free)
    for folder, controller in _cgroups():
        free = min(free, _left(folder, controller, free))
    used = _kibibytes("proc/self/status")
    for limit, what in _LIMITS:
        soft, _ = resource.getrlimit(limit)
        if soft != resource.RLIM_INFINITY:
            free = min(free, soft - used.get(what, 0))
    return max(free, 0)


def _cgroups() -> Iterator[tuple[Path, _Controller]]:
    """The folders of the cgroups in which this process is, up to the outermost that is shown."""
    mounts = [line.split(" ") for line in _lines("proc/self/mountinfo")]
    for line in _lines("proc/self/cgroup"):
        number, names, path = line.split(":", 2)
        controller = _V2 if number == "0" else _V1
        if controller is _V1 and "memory" not in names.split(","):
            continue
        for mount in mounts:
            kind, _, options = mount[mount.index("-") + 1 :][:3]
            if kind != ("cgroup2" if controller is _V2 else "cgroup"):
                continue
            if controller is _V1 and "memory" not in options.split(","):
                continue
            # In a container the mount may begin at its own cgroup, whose path still names all.
            own = os.path.relpath(path, mount[3])
            top = _ROOT / mount[4].lstrip("/")
            folder = top if own.startswith("..") else top / own
            yield folder, controller
            yield from ((up, controller) for up in folder.parents if up.is_relative_to(top))


def _left(folder: Path, controller: _Controller, most: int) -> int:
    """What a cgroup leaves; `most` if it has no limit."""
    limits = [
        number for name in controller.limits if (number := _number(folder / name)) is not None
    ]
    used = _number(folder / controller.usage)
    if not limits or used is None:
        return most
    stat = dict(line.split(" ", 1) for line in _lines(folder / "memory.stat"))
    cache = sum(int(stat.get(key, 0)) for key in controller.cache)
    return min(limits) - max(used - cache, 0)


def _lines(path: str | Path) -> list[str]:
    """The lines of a file of the kernel's; none where there is no such file."""
    try:
        return (_ROOT / path).read_text().splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    """What a file says; None if it is not there or says no number, such as max."""
    text = "".join(_lines(path))
    return int(text) if text.isdecimal() else None


def _kibibytes(path: str) -> dict[str, int]:
    """The amounts of memory that a file names, in bytes."""
    pairs = (line.partition(":") for line in _lines(path))
    return {
        name: int(words[0]) * 1024
        for name, _, amount in pairs
        if (words := amount.split())[1:] == ["kB"]
    }


def check_fits(what: str, needed: int) -> None:
    """Raise, before it begins, if `what` needs more bytes than there are."""
    if needed <= _LITTLE:
        return
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
