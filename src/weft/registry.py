"""Tables that others may add to: planners, topologies, formats, kinds of compact rows.

Weft's own entries are the modules of some packages: each adds itself when it is imported, so a new
one touches no list. Installed packages add theirs by an entry point, scripts by `weft.register`.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar

from weft.errors import InputError, unknown_name
from weft.quoting import quoted

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")  # no dots or slashes: those make a file


class Registry(Mapping[str, T]):
    """Entries by name, in order of rank, then of name; loaded when first looked at.

    Parameters
    ----------
    what
        What an entry is called in messages, such as ``method``.
    packages
        Packages of which every module may add entries.
    entry_points
        Group of entry points that add more: each names an entry, or the class of one. None if
        installed packages add nothing.
    reserved
        Names that mean something else.
    """

    def __init__(
        self,
        what: str,
        *packages: str,
        entry_points: str | None = None,
        reserved: tuple[str, ...] = (),
    ) -> None:
        self.what = what
        self._packages = packages
        self._group = entry_points
        self._reserved = reserved
        self._lock = threading.RLock()
        self._entries: dict[str, tuple[int, T]] = {}
        self._loaded = False

    def add(self, name: str, entry: T, *, rank: int = 0, replace: bool = False) -> T:
        """Add an entry; of lower ranks come first.

        Raises
        ------
        InputError
            There is one of that name already, and it is not to be replaced; or the name is none.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in self._reserved:
            raise InputError(
                f"a {self.what} cannot be called {quoted(str(name))}; take another name, of "
                "letters, digits, - and _"
            )
        if name in self._entries and not replace and self._entries[name][1] is not entry:
            raise InputError(f"there is a {self.what} '{name}' already; take another name")
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
        with self._lock:  # whoever comes while it is being loaded waits
            if not self._loaded:
                self._loaded = True  # entries may look at the table while they are loaded
                try:
                    self._load()
                except BaseException:
                    self._loaded = False
                    raise
        return self._entries

    def _load(self) -> None:
        for package in self._packages:
            for module in iter_modules(import_module(package).__path__):
                import_module(f"{package}.{module.name}")
        if self._group is None or not _may_have(self._group):
            return
        from importlib.metadata import entry_points  # slow to import

        own = dict(self._entries)
        for point in entry_points(group=self._group):
            try:
                entry = _made(point.load())
                if entry.table is not self:
                    raise InputError(f"it is no {self.what}")
                self.add(entry.name, entry, rank=entry.rank)
            except Exception as error:
                self._entries = own
                whose = point.dist.name if point.dist is not None else "a package"
                raise InputError(
                    f"{whose} adds the {self.what} '{point.name}', which cannot be loaded "
                    f"({type(error).__name__}: {error}); repair or uninstall it"
                ) from error


def register(entry: Any, *, replace: bool = False) -> Any:
    """Add an entry to the table of its kind, such as a planner to that of planners.

    It can be used as a decorator of a class.

    Parameters
    ----------
    entry
        An instance of a class that has a table, such as `weft.planners.Planner`; or a subclass of
        one, of which an instance is made.
    replace
        Whether it takes the place of one that has its name, as in a notebook's cell that is run
        again.

    Returns
    -------
    Any
        What was given.

    Raises
    ------
    InputError
        Things of this kind are in no table, or one of its name is there already.
    """
    made = _made(entry)
    len(made.table)  # so that a name that Weft's own or another's have is known to be taken
    made.table.add(made.name, made, rank=made.rank, replace=replace)
    return entry


def _made(entry: Any) -> Any:
    """An entry, or what a class makes; refused if it cannot be in a table."""
    one = entry() if isinstance(entry, type) else entry
    missing = [field for field in ("table", "name", "rank") if not hasattr(one, field)]
    if missing:
        raise InputError(
            f"{type(one).__name__} has no {missing[0]}, so it cannot be registered; derive it from "
            "a class such as weft.planners.Planner, and give it a name"
        )
    return one


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
