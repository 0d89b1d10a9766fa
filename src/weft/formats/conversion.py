"""From any format to any other, by way of the algorithm, which is verified in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from weft import _core
from weft.algorithm import Algorithm
from weft.errors import FormatError, InputError
from weft.formats.format import FORMATS, Format, format_for, read, recognise
from weft.formats.imported import NO_HINTS, Hints


@dataclass(frozen=True)
class Conversion:
    """What is to be converted, and to what.

    Attributes
    ----------
    source, target
        The paths.
    read_as, write_as
        Names of formats; by default what the source is recognised as, and what the target's
        suffix asks for.
    hints
        What the user says about the source.
    options
        Options of the target's format, by name.
    """

    source: Path
    target: Path
    read_as: str | None = None
    write_as: str | None = None
    hints: Hints = NO_HINTS
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def source_format(self) -> str:
        return self.read_as or recognise(self.source)

    @cached_property
    def target_format(self) -> Format:
        return format_for(self.target, self.write_as)

    def check(self) -> None:
        """Raise, before any work, if the target cannot be written or options make no sense."""
        FORMATS.find(self.source_format)
        self.target_format.check_options(self.options)
        try:
            source, target = self.source.resolve(), self.target.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise FormatError(f"cannot write {self.target}: {error}") from None
        if target == source or (target in source.parents and not self.target_format.suffix):
            raise InputError(f"{self.target} is, or holds, what is read; choose another place")
        # A folder of traces may be named by itself, by a file of it or by their common prefix.
        folder = source if source.is_dir() else source.parent
        if (source.is_dir() and source in target.parents) or (
            self.source_format == "chakra" and target.parent == folder and target.suffix == ".et"
        ):
            raise InputError(f"{self.target} lies in what is read; choose another place")
        self.target_format.check_target(self.target)

    def read(self, progress: _core.Progress | None = None) -> Algorithm:
        """The source's algorithm, verified; what is wrong is a FormatError with the place."""
        return read(self.source, self.hints, kind=self.source_format).verified(progress)

    def write(self, algorithm: Algorithm) -> int:
        """Write the target, whole or not at all; gives its bytes."""
        self.target_format.write(algorithm, self.target, **self.options)
        return size_of(self.target)


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)
