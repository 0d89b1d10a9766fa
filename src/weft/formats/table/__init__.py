"""Plain tables of transfers: JSON that says all of an algorithm, and CSV that has its rows only.

They are described in ``docs/formats.md``.
"""

from weft.formats.format import FORMATS, Format
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

CSV = Format(
    "csv",
    "a table of transfers as CSV",
    recognise_csv,
    read_csv,
    write_csv,
    ".csv",
    hints=("collective", "size", "chunks", "group", "root"),
    rank=50,
)
# Last: other formats are JSON too, and know what theirs looks like.
TABLE = Format(
    "table",
    "a table of transfers as JSON",
    recognise_json,
    read_json,
    write_json,
    ".json",
    rank=60,
)
for kind in (CSV, TABLE):
    FORMATS.add(kind.name, kind, rank=kind.rank)
