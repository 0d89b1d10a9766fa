"""Single nodes of Chakra traces as bytes, with any attributes; the core encodes whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from weft.formats.chakra.schema import BOOL, CHAKRA_VERSION, INT32, INT64, TEXT, UINT64

# The kind of each attribute's value, as the older readers want it.
_KINDS = {
    "is_cpu_op": BOOL,
    "num_ops": INT64,
    "tensor_size": UINT64,
    "comm_type": INT64,
    "comm_src": INT32,
    "comm_dst": INT32,
    "comm_size": INT64,
    "comm_tag": INT32,
    "pg_name": TEXT,
}
_BYTES = 2  # the wire type of texts and messages


@dataclass(frozen=True)
class Node:
    """One node; numbers are not negative, attributes are those of `_KINDS`."""

    id: int
    name: str
    type: int
    data_deps: Sequence[int] = ()
    ctrl_deps: Sequence[int] = ()
    duration_us: int = 0
    attributes: tuple[tuple[str, int | str], ...] = ()


def encode(node: Node) -> bytes:
    """The node as a frame: its length, then the message, as the protobuf runtime has it."""
    body = [
        _number(1, node.id),
        _field(2, node.name.encode()),
        _number(3, node.type),
        _field(4, b"".join(map(_varint, node.ctrl_deps))),
        _field(5, b"".join(map(_varint, node.data_deps))),
        _number(7, node.duration_us),
        *(_attribute(name, value) for name, value in node.attributes),
    ]
    return _framed(b"".join(body))


@lru_cache(maxsize=1 << 16)
def _attribute(name: str, value: int | str) -> bytes:
    """Attributes repeat far more often than not."""
    kind = _KINDS[name]
    if isinstance(value, str):
        content = _tag(kind, _BYTES) + _framed(value.encode())
    else:
        content = _tag(kind, 0) + _varint(value)
    return _field(10, _field(1, name.encode()) + content)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _framed(content: bytes) -> bytes:
    return _varint(len(content)) + content


def _field(field: int, content: bytes) -> bytes:
    return _tag(field, _BYTES) + _framed(content) if content else b""


def _number(field: int, value: int) -> bytes:
    return _tag(field, 0) + _varint(value) if value else b""


FILE_HEAD = _framed(_field(1, CHAKRA_VERSION.encode()))
"""The GlobalMetadata that every file starts with."""
