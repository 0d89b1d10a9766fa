"""Tables that others may add to: planners, topologies, formats, kinds of compact rows.

Weft's own entries are the modules of some packages: each adds itself when it is imported, so a new
one touches no list. Installed packages add theirs by an entry point, scripts by `weft.register`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TypeVar

from weft.errors import InputError, unknown_name

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Entries by name, in order of rank, then of name; loaded when first looked at.

    Parameters
    ----------
    what
        What an entry is called in messages, such as ``method``.
    packages
        Packages of which every module may add entries.
    entry_points
        Group of entry points that add more: each names an entry, or something that makes one
        when it is called. None if installed packages add nothing.
    """

    def __init__(self, what: str, *packages: str, entry_points: str | None = None) -> None:
        self.what = what
        self._packages = packages
        self._group = entry_points
        self._entries: dict[str, tuple[int, T]] = {}
        self._loaded = False

    def add(self, name: str, entry: T, *, rank: int = 0, replace: bool = False) -> T:
        """Add an entry; of lower ranks come first.

        Raises
        ------
        InputError
            There is one of that name already, and it is not to be replaced.
        """
        if name in self._entries and not replace and self._entries[name][1] is not entry:
            raise InputError(f"there is a {self.what} '{name}' already")
        self._entries[name] = rank, entry
        return entry

    def remove(self, name: str) -> None:
        """Take an entry out."""
        del self._entries[name]

    def find(self, name: str) -> T:
        """The entry of this name; raises InputError, with the names there are, if there is none."""
        if name not in self:
            raise unknown_name(self.what, name, list(self))
        return self[name]

    def __getitem__(self, name: str) -> T:
        # Entry points are slow to look for: not for what is known without them.
        entries = self._entries if name in self._entries else self._all()
        return entries[name][1]

    def __iter__(self) -> Iterator[str]:
        entries = self._all()
        return iter(sorted(entries, key=lambda name: (entries[name][0], name)))

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, tuple[int, T]]:
        if not self._loaded:
            self._loaded = True
            for package in self._packages:
                for module in iter_modules(import_module(package).__path__):
                    import_module(f"{package}.{module.name}")
            if self._group is not None:
                self._load_entry_points(self._group)
        return self._entries

    def _load_entry_points(self, group: str) -> None:
        if not _may_have(group):
            return
        from importlib.metadata import entry_points  # slow to import

        for point in entry_points(group=group):
            loaded = point.load()
            entry = loaded() if isinstance(loaded, type) else loaded
            self.add(point.name, entry, rank=getattr(entry, "rank", 0))


def _may_have(group: str) -> bool:
    """Whether some installed package may have entry points of a group: a quick look.

    What is no folder, such as a zip file, is not looked into, and may.
    """
    name = group.encode()
    for place in map(Path, sys.path):
        if place.is_file():
            return True
        for file in place.glob("*.*-info/entry_points.txt"):
            if name in file.read_bytes():
                return True
    return False
