"""A workload on disk: Chakra execution traces, one file per rank, as ASTRA-sim takes them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from weft import _core
from weft.documents import naming, read_whole
from weft.errors import FormatError
from weft.formats.chakra import TraceFiles


@dataclass(frozen=True, eq=False)
class RankTrace:
    """What is known of one rank's file; its other nodes are only ever copied.

    Attributes
    ----------
    length
        Its size in bytes.
    frames
        Its collectives.
    """

    length: int
    frames: _core.TraceFrames


@dataclass(frozen=True, eq=False)
class Workload:
    """The traces of all ranks, in order of rank."""

    files: TraceFiles
    traces: tuple[RankTrace, ...]

    @property
    def ranks(self) -> int:
        return len(self.traces)

    def content(self, rank: int) -> bytes:
        """A rank's file once more: traces are large, so one at a time is held."""
        content = self.files.content(rank)
        if len(content) != self.traces[rank].length:
            raise FormatError(f"{self.files.path(rank)}: has changed since it was read")
        return content

    def place(self, rank: int, collective: int) -> str:
        """File and node of one of a rank's collectives, for messages."""
        return f"{self.files.path(rank)}: node {self.traces[rank].frames.id[collective]}"


def load_workload(where: str | os.PathLike[str]) -> Workload:
    """Read the traces of a folder, or those that start with a prefix.

    Raises
    ------
    FormatError
        There are none, a rank is missing, or a file is no sound trace; names file and place.
    """
    return read_whole(Path(where), lambda: _load(Path(where)))


def _load(where: Path) -> Workload:
    files = TraceFiles(where)
    count = len(files)
    files.expect(count, f"there are {count} traces, so their ranks must be 0 to {count - 1}")
    return Workload(files, tuple(_scan(files, rank) for rank in range(len(files))))


def _scan(files: TraceFiles, rank: int) -> RankTrace:
    content = files.content(rank)
    with naming(files.path(rank)):
        return RankTrace(len(content), _core.read_frames(content))
