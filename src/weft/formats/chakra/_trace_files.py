"""The traces of all ranks: one file each, found by folder or by the beginning of their names."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.documents import naming
from weft.errors import FormatError, InputError
from weft.formats.chakra._attributes import Attributes
from weft.formats.chakra.schema import COMM_RECV, COMM_SEND, HAS_DST, HAS_SIZE, HAS_SRC, HAS_TAG

_NAME = re.compile(r"(.*?)(0|[1-9][0-9]{0,8})\.et", re.DOTALL)
_JOINTS = (".", "_", "-", "")  # between a prefix as users name it and the rank
_SHOWN = 3


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
            prefixes = sorted(found)[:_SHOWN]
            names = ", ".join(f"{prefix}*.et" for prefix in prefixes)
            choices = " or ".join(str(found[prefix][0] / _stem(prefix)) for prefix in prefixes)
            raise FormatError(
                f"{path} holds traces of several names ({names}), so several workloads; choose "
                f"one: {choices}"
            )
        if not found:
            raise FormatError(
                f"{path} holds no trace: there is no trace of rank 0, such as NAME.0.et"
            )
        (self.folder, self.prefix, self._ranks), *_ = found.values()
        for path in map(self.path, self._ranks):
            with _reading(path):
                status = path.stat()
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
        return self.folder / f"{self.prefix}{rank}.et"

    @property
    def name(self) -> Path:
        """What the paths of all traces have in common, as ASTRA-sim takes it."""
        return self.folder / _stem(self.prefix)

    def expect(self, ranks: int, why: str = "") -> None:
        """Raise unless the traces are those of ranks 0 to ranks - 1, which `why` explains."""
        why = why or f"there are {ranks} NPUs, but {len(self)} traces"
        for rank in range(min(ranks, len(self) + 1)):
            if rank not in self._ranks:
                raise FormatError(f"{self.path(rank)} is missing: {why}")
        if len(self) > ranks:
            raise FormatError(f"{self.path(max(self._ranks))} is of no NPU: there are {ranks}")

    def content(self, rank: int) -> bytes:
        """The bytes of one file."""
        path = self.path(rank)
        with _reading(path):
            return path.read_bytes()

    def read(self, rank: int) -> tuple[Attributes, _core.ChakraNodes]:
        """What one file holds."""
        content = self.content(rank)
        with naming(self.path(rank)):
            _, found, nodes = _core.read_chakra(content)
            return Attributes(found), nodes


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say which path cannot be read; a null character in it is a ValueError."""
    try:
        yield
    except FileNotFoundError:
        raise FormatError(f"{path} is missing") from None
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None


def check_present(nodes: _core.ChakraNodes, present: NDArray[np.uint16]) -> None:
    """Raise if a message lacks an attribute that it needs; `present` are bits of those there."""
    for kind, end in ((COMM_SEND, HAS_DST), (COMM_RECV, HAS_SRC)):
        bits = end | HAS_SIZE | HAS_TAG
        for node in np.flatnonzero((nodes.type == kind) & (present & bits != bits))[:1]:
            raise InputError(
                f"node {nodes.id[node]} lacks one of comm_src or comm_dst, comm_size, comm_tag"
            )


def _stem(prefix: str) -> str:
    """A prefix as users name it, without what joins it to the rank."""
    return prefix[:-1] if prefix[-1:] in _JOINTS else prefix


def has_traces(path: Path) -> bool:
    """Whether a path names traces, as far as their names go."""
    try:
        return bool(_listed(path))
    except FormatError:
        return False


def _listed(path: Path) -> dict[str, tuple[Path, str, set[int]]]:
    """By what stands before the rank: the folder, that prefix, and the ranks there are."""
    with _reading(path):
        if path.is_dir():
            return _in_folder(path)
        parent = _in_folder(path.parent) if path.parent.is_dir() else {}
        named = split_name(path.name) if path.is_file() else None
        wanted = [named[0]] if named else [path.name + joint for joint in _JOINTS]
        chosen = {prefix: parent[prefix] for prefix in wanted if prefix in parent}
        if not chosen and not path.exists():
            raise FormatError(f"cannot read {path}: No such file or directory")
        return chosen


def _in_folder(folder: Path) -> dict[str, tuple[Path, str, set[int]]]:
    found: dict[str, tuple[Path, str, set[int]]] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if named := split_name(entry.name):
                found.setdefault(named[0], (folder, named[0], set()))[2].add(named[1])
    return found
