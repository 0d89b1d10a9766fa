"""A workload on disk: Chakra execution traces, one file a rank, as ASTRA-sim takes them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from weft import _core
from weft.documents import read_whole
from weft.errors import FormatError

_NAME = re.compile(r"(.+)\.(0|[1-9][0-9]{0,8})\.et", re.DOTALL)


@dataclass(frozen=True, eq=False)
class RankTrace:
    """What is known of one rank's file; its other nodes are only ever copied.

    Attributes
    ----------
    path
        The file.
    length
        Its size in bytes.
    frames
        Its collectives.
    """

    path: Path
    length: int
    frames: _core.TraceFrames

    def content(self) -> bytes:
        """The file once more: traces are large, so one at a time is held."""
        content = _read(self.path)
        if len(content) != self.length:
            raise FormatError(f"{self.path}: has changed since it was read")
        return content


@dataclass(frozen=True, eq=False)
class Workload:
    """The traces of all ranks, in order of rank."""

    folder: Path
    prefix: str
    traces: tuple[RankTrace, ...]

    @property
    def ranks(self) -> int:
        return len(self.traces)

    def file_name(self, rank: int) -> str:
        return f"{self.prefix}.{rank}.et"

    def place(self, rank: int, collective: int) -> str:
        """File and node of one of a rank's collectives, for messages."""
        trace = self.traces[rank]
        return f"{trace.path}: node {trace.frames.id[collective]}"


def load_workload(where: str | os.PathLike[str]) -> Workload:
    """Read the traces of a folder, or those that start with a prefix.

    Raises
    ------
    FormatError
        There are none, a rank is missing, or a file is no sound trace; names file and place.
    """
    return read_whole(Path(where), lambda: _load(Path(where)))


def _load(where: Path) -> Workload:
    folder, prefix, ranks = _find(where)
    for rank in range(ranks):
        if not (folder / f"{prefix}.{rank}.et").is_file():
            raise FormatError(
                f"{folder / f'{prefix}.{rank}.et'} is missing: there are {ranks} traces, "
                "so their ranks must be 0 to " + str(ranks - 1)
            )
    paths = [folder / f"{prefix}.{rank}.et" for rank in range(ranks)]
    return Workload(folder, prefix, tuple(map(_scan, paths)))


def _find(where: Path) -> tuple[Path, str, int]:
    """Folder, prefix and number of traces."""
    try:
        inside = where.is_dir()
        folder = where if inside else where.parent
        names = sorted(os.listdir(folder))
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read {where}: {getattr(error, 'strerror', error)}") from None
    counts: dict[str, int] = {}
    for match in filter(None, map(_NAME.fullmatch, names)):
        if inside or match[1] == where.name:
            counts[match[1]] = counts.get(match[1], 0) + 1
    if not counts:
        raise FormatError(
            f"{where}: there is no trace of rank 0; a workload is a folder of files such as "
            "NAME.0.et, or what their paths have in common, FOLDER/NAME"
        )
    if len(counts) > 1:
        first, second = list(counts)[:2]
        raise FormatError(
            f"{where} holds several workloads; choose one: {folder / first} or {folder / second}"
        )
    return folder, *counts.popitem()


def _scan(path: Path) -> RankTrace:
    content = _read(path)
    try:
        return RankTrace(path, len(content), _core.read_frames(content))
    except ValueError as error:
        raise FormatError(f"{path}: {error}") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror}") from None
