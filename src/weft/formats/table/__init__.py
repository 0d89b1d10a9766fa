"""Plain tables of transfers: JSON that says all of an algorithm, and CSV that has its rows only.

They are described in ``docs/formats.md``.
"""

from weft.formats.table._csv import read_csv, recognise_csv, write_csv
from weft.formats.table._json import read_json, recognise_json, write_json

__all__ = [
    "read_csv",
    "read_json",
    "recognise_csv",
    "recognise_json",
    "write_csv",
    "write_json",
]
