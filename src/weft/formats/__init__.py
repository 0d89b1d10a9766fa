"""Algorithms in the formats of others: one room per format, one way in and one way out."""

from weft.formats.conversion import Conversion
from weft.formats.format import FORMATS, Format, Option, format_for, read, recognise, write
from weft.formats.imported import NO_HINTS, Hints, Imported

__all__ = [
    "FORMATS",
    "NO_HINTS",
    "Conversion",
    "Format",
    "Hints",
    "Imported",
    "Option",
    "format_for",
    "read",
    "recognise",
    "write",
]
