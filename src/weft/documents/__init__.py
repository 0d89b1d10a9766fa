"""Files that people write, in YAML or JSON: read within bounds, faults named with their line."""

from weft.documents.places import PlacedError, line_of, load_yaml, placed
from weft.documents.reading import Document, load_json, read_document
from weft.documents.records import Words, convert, explain

__all__ = [
    "Document",
    "PlacedError",
    "Words",
    "convert",
    "explain",
    "line_of",
    "load_json",
    "load_yaml",
    "placed",
    "read_document",
]
