"""The table of files that describe machines and fabrics; each is recognised by what is in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from weft.documents import Document
from weft.registry import Registry
from weft.topology.labels import Wishes
from weft.topology.machines.machine import Machine


@dataclass(frozen=True, kw_only=True)
class Reader:
    """How a kind of file is read.

    Attributes
    ----------
    name
        For the table: small letters, digits and dashes.
    title
        What such a file is, in a few words that begin with an article.
    recognise
        Whether a file is of this kind, by its content.
    read
        What it says. Raises `PlacedError` with the line where something is wrong.
    rank
        Readers of lower ranks are asked first.
    """

    name: str
    title: str
    recognise: Callable[[Document], bool]
    read: Callable[[Document, Wishes], Machine]
    rank: int = 50

    table: ClassVar[Registry[Reader]] = Registry(
        "reader of machines",
        "weft.topology.machines.readers",
        entry_points="weft.readers",
    )


READERS = Reader.table


def reader_of(document: Document) -> Reader | None:
    """Who reads this file; None if nobody does."""
    return next((reader for reader in READERS.values() if reader.recognise(document)), None)
