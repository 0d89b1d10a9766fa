"""Chakra's public schema for the protocol-buffer runtime, built from its field numbers.

In a pool of its own, so that it cannot clash with an installed chakra.
"""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = descriptor_pb2.FieldDescriptorProto

BASES = (
    ("double", Field.TYPE_DOUBLE),
    ("float", Field.TYPE_FLOAT),
    ("int32", Field.TYPE_INT32),
    ("int64", Field.TYPE_INT64),
    ("uint32", Field.TYPE_UINT32),
    ("uint64", Field.TYPE_UINT64),
    ("sint32", Field.TYPE_SINT32),
    ("sint64", Field.TYPE_SINT64),
    ("fixed32", Field.TYPE_FIXED32),
    ("fixed64", Field.TYPE_FIXED64),
    ("sfixed32", Field.TYPE_SFIXED32),
    ("sfixed64", Field.TYPE_SFIXED64),
    ("bool", Field.TYPE_BOOL),
    ("string", Field.TYPE_STRING),
    ("bytes", Field.TYPE_BYTES),
)
KIND = {name: 3 + 2 * i for i, (name, _) in enumerate(BASES)}
NODE_TYPES = (
    "INVALID_NODE",
    "METADATA_NODE",
    "MEM_LOAD_NODE",
    "MEM_STORE_NODE",
    "COMP_NODE",
    "COMM_SEND_NODE",
    "COMM_RECV_NODE",
    "COMM_COLL_NODE",
)


def _add(message, name, number, kind, *, repeated=False, type_name=None, oneof=None):
    field = message.field.add(name=name, number=number, type=kind)
    field.label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
    if type_name:
        field.type_name = f".ChakraProtoMsg.{type_name}"
    if oneof is not None:
        field.oneof_index = oneof


def _attribute(file) -> None:
    attribute = file.message_type.add(name="AttributeProto")
    attribute.oneof_decl.add(name="value")
    _add(attribute, "name", 1, Field.TYPE_STRING)
    _add(attribute, "doc_string", 2, Field.TYPE_STRING)
    for name, kind in BASES:
        listed = file.message_type.add(name=f"{name}_list_message")
        _add(listed, "values", 1, kind, repeated=True)
        _add(attribute, f"{name}_val", KIND[name], kind, oneof=0)
        _add(
            attribute,
            f"{name}_list",
            KIND[name] + 1,
            Field.TYPE_MESSAGE,
            type_name=f"{name}_list_message",
            oneof=0,
        )


def _node(file) -> None:
    node = file.message_type.add(name="Node")
    _add(node, "id", 1, Field.TYPE_UINT64)
    _add(node, "name", 2, Field.TYPE_STRING)
    _add(node, "type", 3, Field.TYPE_ENUM, type_name="NodeType")
    _add(node, "ctrl_deps", 4, Field.TYPE_UINT64, repeated=True)
    _add(node, "data_deps", 5, Field.TYPE_UINT64, repeated=True)
    _add(node, "start_time_micros", 6, Field.TYPE_UINT64)
    _add(node, "duration_micros", 7, Field.TYPE_UINT64)
    _add(node, "inputs", 8, Field.TYPE_MESSAGE, type_name="IOInfo")
    _add(node, "outputs", 9, Field.TYPE_MESSAGE, type_name="IOInfo")
    _add(node, "attr", 10, Field.TYPE_MESSAGE, repeated=True, type_name="AttributeProto")


def _schema():
    file = descriptor_pb2.FileDescriptorProto(
        name="chakra_for_tests.proto", package="ChakraProtoMsg", syntax="proto3"
    )
    types = file.enum_type.add(name="NodeType")
    for number, name in enumerate(NODE_TYPES):
        types.value.add(name=name, number=number)
    _attribute(file)
    info = file.message_type.add(name="IOInfo")
    for number, name in enumerate(("values", "shapes", "types"), 1):
        _add(info, name, number, Field.TYPE_STRING)
    _node(file)
    metadata = file.message_type.add(name="GlobalMetadata")
    _add(metadata, "version", 1, Field.TYPE_STRING)
    _add(metadata, "attr", 2, Field.TYPE_MESSAGE, repeated=True, type_name="AttributeProto")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}"))
        for name in ("GlobalMetadata", "Node", "AttributeProto")
    ]


GlobalMetadata, Node, AttributeProto = _schema()


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def frame(message: bytes) -> bytes:
    return varint(len(message)) + message


def frames(content: bytes) -> list[bytes]:
    """The messages of a file, without their lengths."""
    messages, at = [], 0
    while at < len(content):
        size = shift = 0
        while True:
            byte = content[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        messages.append(content[at : at + size])
        at += size
    return messages
