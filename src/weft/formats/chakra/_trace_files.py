"""The traces of all ranks: one file each, found by folder or by the beginning of their names."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft import _core
from weft.errors import FormatError, InputError
from weft.formats.chakra._attributes import Attributes

_NAME = re.compile(r"(.*?)(0|[1-9][0-9]{0,8})\.et", re.DOTALL)
_JOINTS = (".", "_", "-", "")  # between a prefix as users name it and the rank
_SHOWN = 3


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say in which file it went wrong."""
    try:
        yield
    except FormatError:
        raise
    except (InputError, ValueError) as error:
        raise FormatError(f"{path}: {error}") from None


def split_name(name: str) -> tuple[str, int] | None:
    """What stands before the rank in the name of a trace, and the rank; None if it is no trace."""
    match = _NAME.fullmatch(name)
    # A prefix that ends in a digit would leave open where the rank begins.
    if match is None or match[1][-1:].isdigit():
        return None
    return match[1], int(match[2])


class TraceFiles:
    """One trace for each rank from 0 on, of which none is missing.

    Parameters
    ----------
    path
        A folder with the traces of one algorithm, the beginning of their names up to the rank
        (as ASTRA-sim takes it), or one of the files.
    """

    def __init__(self, path: Path) -> None:
        self.bytes = 0
        found = _listed(path)
        if len(found) > 1:
            names = ", ".join(f"{prefix}*.et" for prefix in sorted(found)[:_SHOWN])
            raise FormatError(
                f"{path} holds traces of several names ({names}); give the folder and the name"
            )
        if not found:
            raise FormatError(f"{path} holds no trace (weft.0.et, weft.1.et, ...)")
        (self._folder, self._prefix, self._ranks), *_ = found.values()
        for rank in self._ranks:
            self._count(self.path(rank))

    def _count(self, path: Path) -> None:
        try:
            status = path.stat()
        except OSError as error:
            raise FormatError(f"cannot read {path}: {error.strerror}") from None
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{path} is not a file")
        self.bytes += status.st_size

    def __len__(self) -> int:
        return len(self._ranks)

    @property
    def first(self) -> int:
        """The lowest rank there is."""
        return min(self._ranks)

    def path(self, rank: int) -> Path:
        return self._folder / f"{self._prefix}{rank}.et"

    def expect(self, ranks: int) -> None:
        """Raise unless the traces are those of ranks 0 to ranks - 1."""
        for rank in range(min(ranks, len(self) + 1)):
            if rank not in self._ranks:
                raise FormatError(
                    f"{self.path(rank)} is missing: there are {ranks} NPUs, but {len(self)} traces"
                )
        if len(self) > ranks:
            raise FormatError(f"{self.path(max(self._ranks))} is of no NPU: there are {ranks}")

    def content(self, rank: int) -> bytes:
        """The bytes of one file."""
        path = self.path(rank)
        try:
            return path.read_bytes()
        except FileNotFoundError:
            raise FormatError(f"{path} is missing") from None
        except OSError as error:
            raise FormatError(f"cannot read {path}: {error.strerror}") from None

    def read(self, rank: int) -> tuple[Attributes, _core.ChakraNodes]:
        """What one file holds."""
        content = self.content(rank)
        with naming(self.path(rank)):
            _, found, nodes = _core.read_chakra(content)
            return Attributes(found), nodes


def has_traces(path: Path) -> bool:
    """Whether a path names traces, as far as their names go."""
    try:
        return bool(_listed(path))
    except FormatError:
        return False


def _listed(path: Path) -> dict[str, tuple[Path, str, set[int]]]:
    """By what stands before the rank: the folder, that prefix, and the ranks there are."""
    try:
        if path.is_dir():
            return _in_folder(path)
        parent = _in_folder(path.parent) if path.parent.is_dir() else {}
        named = split_name(path.name) if path.is_file() else None
        wanted = [named[0]] if named else [path.name + joint for joint in _JOINTS]
        chosen = {prefix: parent[prefix] for prefix in wanted[:] if prefix in parent}
        if not chosen and not path.exists():
            raise FormatError(f"cannot read {path}: No such file or directory")
        return chosen
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # a null character
        raise FormatError(f"cannot read {path}: {error}") from None


def _in_folder(folder: Path) -> dict[str, tuple[Path, str, set[int]]]:
    found: dict[str, tuple[Path, str, set[int]]] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if named := split_name(entry.name):
                found.setdefault(named[0], (folder, named[0], set()))[2].add(named[1])
    return found
