"""What a folder of traces says once, in NPU 0's file: all but the rows, and how many there are."""

from __future__ import annotations

import json

import msgspec

from weft.algorithm import Algorithm
from weft.errors import InputError
from weft.formats.chakra._attributes import SINT64_LIST, TEXT, Attribute, delta
from weft.formats.header import Frame, frame_of, json_of


class Header(Frame, kw_only=True):
    """The JSON text of the attribute ``weft.header``; its columns are attributes of their own."""

    npus: int
    rows: int
    checksum: int | None = None
    columns: list[str] = msgspec.field(default_factory=list)


def header_attributes(
    algorithm: Algorithm, npus: int, checksum: int, optional: list[str]
) -> list[Attribute]:
    """The attributes that only NPU 0's file has; `optional` names the rows' columns."""
    fields, columns = frame_of(algorithm, algorithm.routes)
    rows = len(algorithm.transfers)
    header = Header(npus=npus, rows=rows, checksum=checksum, columns=optional, **fields)
    return [
        ("weft.header", TEXT, json_of(header)),
        *((f"weft.{name}", SINT64_LIST, delta(values)) for name, values in columns.items()),
    ]


def parse_header(text: bytes) -> Header:
    """Raise InputError where the text is no header."""
    try:
        return msgspec.convert(json.loads(text), Header)
    except (ValueError, RecursionError) as error:
        raise InputError(f"weft.header is damaged ({error})") from None
