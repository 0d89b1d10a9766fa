"""What a folder of traces says once, in NPU 0's file: all but the rows, and how many there are."""

from __future__ import annotations

import json

import msgspec

from weft.algorithm import Algorithm
from weft.errors import InputError
from weft.formats.chakra._attributes import SINT64_LIST, TEXT, Attribute, delta
from weft.formats.header import Header, header_json, header_of


class TraceHeader(Header, kw_only=True):
    """The JSON text of the attribute ``weft.header``; its columns are attributes of their own."""

    npus: int
    rows: int
    checksum: int | None = None
    columns: list[str] = msgspec.field(default_factory=list)


def header_attributes(
    algorithm: Algorithm, npus: int, checksum: int, optional: list[str]
) -> list[Attribute]:
    """The attributes that only NPU 0's file has; `optional` names the rows' columns."""
    fields, columns = header_of(algorithm, algorithm.routes)
    rows = len(algorithm.transfers)
    header = TraceHeader(npus=npus, rows=rows, checksum=checksum, columns=optional, **fields)
    return [
        ("weft.header", TEXT, header_json(header)),
        *((f"weft.{name}", SINT64_LIST, delta(values)) for name, values in columns.items()),
    ]


def parse_header(text: bytes) -> TraceHeader:
    """Raise InputError where the text is no header."""
    try:
        return msgspec.convert(json.loads(text), TraceHeader)
    except (ValueError, RecursionError) as error:
        raise InputError(f"weft.header is damaged ({error})") from None
