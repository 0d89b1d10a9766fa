"""Files: what people write, read within bounds, faults named; what Weft writes, whole or not."""

from weft.documents.folders import check_replaceable, new_folder, read_whole
from weft.documents.places import PlacedError, load_yaml, placed
from weft.documents.reading import (
    Document,
    load_json,
    naming,
    open_file,
    read_bytes,
    read_document,
)
from weft.documents.records import Words, convert, explain
from weft.documents.writing import (
    check_new_file,
    check_replaces_file,
    give_name,
    link_target,
    new_descriptor,
    new_file,
)

__all__ = [
    "Document",
    "PlacedError",
    "Words",
    "check_new_file",
    "check_replaceable",
    "check_replaces_file",
    "convert",
    "explain",
    "give_name",
    "link_target",
    "load_json",
    "load_yaml",
    "naming",
    "new_descriptor",
    "new_file",
    "new_folder",
    "open_file",
    "placed",
    "read_bytes",
    "read_document",
    "read_whole",
]
