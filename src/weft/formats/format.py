"""The table of formats; how a file is recognised, and which format a suffix asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from weft.algorithm import Algorithm
from weft.collective import Collective
from weft.documents import check_new_file, check_replaceable, open_file, read_whole
from weft.errors import FormatError, InputError
from weft.formats.imported import NO_HINTS, Hints, Imported
from weft.judge import verify
from weft.registry import Registry

HEAD_BYTES = 4096


@dataclass(frozen=True)
class Option:
    """An option of a format's `write`; ``weft convert`` has a flag for it.

    Attributes
    ----------
    help
        What it does, in a sentence.
    metavar
        What stands for its value in the help.
    parse
        From the text on the command line to the value.
    """

    help: str
    metavar: str = "TEXT"
    parse: Callable[[str], Any] = str


@dataclass(frozen=True)
class Format:
    """A format of algorithms on disk.

    Attributes
    ----------
    name, title
        What options and messages call it; what it is, in a few words.
    recognise
        Whether a path is of this format, from the path and the first bytes of its content
        (empty if it is a folder).
    read
        Reads an algorithm; raises FormatError, which names file and place.
    write
        Writes one, whole or not at all; takes the format's own options by name.
    suffix
        Ending of its files, in lower case; empty if it is a folder.
    options
        Options of `write`, by name.
    hints
        Fields of `Hints` that its files leave open.
    members
        Names of the files that a folder of this format holds.
    check_demands
        Raises, before any work, if files surely cannot hold what these collectives take.
    in_switches
        Whether files can say that a switch copies, or adds, as an algorithm lets it; None if they
        never can, so that planning does without.
    rank
        Formats of lower rank are asked first whether they recognise a file; among those of one
        suffix, the one of the highest rank is written by default.
    """

    name: str
    title: str
    recognise: Callable[[Path, bytes], bool]
    read: Callable[[Path, Hints], Imported]
    write: Callable[..., None]
    suffix: str
    options: Mapping[str, Option] = field(default_factory=dict)
    hints: Sequence[str] = ()
    members: re.Pattern[str] = re.compile("(?!)")
    check_demands: Callable[[Sequence[Collective]], None] = lambda _: None
    in_switches: Callable[[Algorithm], bool] | None = lambda _: True
    rank: int = 0

    table: ClassVar[Registry[Format]]

    def check_options(self, names: Iterable[str]) -> None:
        """Raise if `write` does not take one of these options."""
        for name in names:
            if name not in self.options:
                said = ", ".join(map(flag, self.options)) or "no options"
                raise InputError(f"{self.name} takes no {flag(name)} (it takes {said})")

    def loses_switches(self, algorithm: Algorithm) -> bool:
        """Whether rows that switches copy or add are written as if each went alone."""
        network = algorithm.topology
        if network is None or not algorithm.timed or network.plain is network:
            return False
        if self.in_switches is not None and self.in_switches(algorithm):
            return False
        return not verify(algorithm.on(network.plain)).ok

    def check_target(self, path: Path) -> None:
        """Raise, before any work, if a path surely cannot be written."""
        if self.suffix:
            check_new_file(path)
        else:
            check_replaceable(path, self.members)

    @property
    def namesakes(self) -> list[Format]:
        """Other formats of the same suffix."""
        return [kind for kind in FORMATS.values() if kind.suffix == self.suffix and kind != self]

    def described(self, path: str | Path) -> str:
        """What a path is in this format, and what else its suffix could have stood for."""
        more = (f"; weft convert --to {kind.name} writes {kind.title}" for kind in self.namesakes)
        return f"{path} is {self.title}{''.join(more)}"


FORMATS: Registry[Format] = Registry("format", "weft.formats", entry_points="weft.formats")
Format.table = FORMATS


def recognise(path: Path) -> str:
    """Name of the format of a file or folder, by what is in it."""
    head = b""
    try:
        there = path.exists()
        if there and not path.is_dir():
            with open_file(path) as file:
                head = file.read(HEAD_BYTES)
        for name, kind in FORMATS.items():
            if kind.recognise(path, head):
                return name
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None
    if not there:
        raise FormatError(f"cannot read {path}: No such file or directory")
    known = ", ".join(kind.title for kind in FORMATS.values())
    raise FormatError(f"{path} is in no format Weft knows (known: {known})")


def read(path: str | Path, hints: Hints = NO_HINTS, *, kind: str | None = None) -> Imported:
    """Read an algorithm in any known format; `kind` names the format instead of recognising it.

    The algorithm is not judged yet: see `Imported.verified`.
    """
    path = Path(path)
    return read_whole(path, lambda: FORMATS.find(kind or recognise(path)).read(path, hints))


def write(
    algorithm: Algorithm,
    path: str | Path,
    *,
    kind: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> str:
    """Write an algorithm; gives the name of the format.

    Parameters
    ----------
    kind
        Name of the format; by default what the path's suffix asks for: see `format_for`.
    options
        Options of the format, by name.
    """
    if not isinstance(algorithm, Algorithm):
        what = type(algorithm).__name__
        raise InputError(f"an Algorithm is written, not a {what}; weft.save takes a Result, too")
    path, options = Path(path), options or {}
    target = format_for(path, kind)
    target.check_options(options)
    target.write(algorithm, path, **options)
    return target.name


def format_for(path: Path, kind: str | None = None) -> Format:
    """The format to write a path in: `kind`, or what its suffix asks for.

    Without a suffix that is a folder of Chakra execution traces.

    Raises
    ------
    FormatError
        No format has that suffix.
    """
    if kind is not None:
        return FORMATS.find(kind)
    for target in reversed(list(FORMATS.values())):
        if target.suffix == path.suffix.lower():
            return target
    known = ", ".join(dict.fromkeys(kind.suffix for kind in FORMATS.values() if kind.suffix))
    raise FormatError(
        f"{path}: no format is written to files that end in {path.suffix} "
        f"(known: {known}, none for a folder of traces)"
    )


def flag(option: str) -> str:
    """The flag of an option on the command line."""
    return f"--{option.replace('_', '-')}"
