"""The core's encoder against the protocol-buffer runtime, byte for byte; its decoder likewise."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from chakra_samples import random_algorithm, ring, star, with_places
from chakra_schema import BASES, KIND, AttributeProto, GlobalMetadata, Node, frame, frames, varint
from hypothesis import given
from hypothesis import strategies as st

from weft import _core
from weft.formats import chakra

VECTOR = bytes.fromhex(
    "07 0a 05 30 2e 30 2e 34"
    "35 12 04 73 65 6e 64 18 05 52 0c 0a 08 63 6f 6d 6d 5f 64 73 74 38 01"
    "52 0f 0a 09 63 6f 6d 6d 5f 73 69 7a 65 48 80 80 40 52 0c 0a 08 63 6f 6d 6d 5f 74 61 67 38 03"
    "3a 08 01 12 04 72 65 63 76 18 06 2a 01 00 52 0c 0a 08 63 6f 6d 6d 5f 73 72 63 38 07"
    "52 0f 0a 09 63 6f 6d 6d 5f 73 69 7a 65 48 80 80 40 52 0c 0a 08 63 6f 6d 6d 5f 74 61 67 38 03"
    "12 08 02 12 04 63 6f 6d 70 18 04 22 01 00 2a 01 01 38 05"
)
KNOWN = (
    ("comm_src", "int32"),
    ("comm_dst", "int32"),
    ("comm_size", "int64"),
    ("comm_tag", "int32"),
    ("msg_chunk_cnt", "int32"),
    ("msg_chunk_idx", "int32"),
    ("total_chunk_cnt", "int32"),
    ("comm_type", "int64"),
    ("is_cpu_op", "bool"),
)
INTEGERS = {
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 63) - 1),
    "sint32": (-(1 << 31), (1 << 31) - 1),
    "sint64": (-(1 << 63), (1 << 63) - 1),
    "fixed32": (0, (1 << 32) - 1),
    "fixed64": (0, (1 << 63) - 1),
    "sfixed32": (-(1 << 31), (1 << 31) - 1),
    "sfixed64": (-(1 << 63), (1 << 63) - 1),
    "bool": (0, 1),
}
COLUMNS = (
    *("id", "type", "ctrl_offsets", "ctrl", "data_offsets", "data", "start", "duration"),
    *("present", *(name for name, _ in KNOWN), "names", "groups"),
)

uint64 = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1))


@st.composite
def node_dicts(draw):
    return {
        "id": draw(uint64),
        "name": draw(st.text("az é漢", max_size=200)),
        "type": draw(st.integers(0, 7)),
        "ctrl_deps": draw(st.lists(uint64, max_size=30)),
        "data_deps": draw(st.lists(uint64, max_size=5)),
        "start": draw(uint64),
        "duration": draw(uint64),
        "known": [draw(st.none() | st.integers(*INTEGERS[base])) for _, base in KNOWN],
        "group": draw(st.sampled_from(["", "", "7", "default é" * 20])),
    }


def to_core(nodes, *, names=True) -> _core.ChakraNodes:
    def waits(key):
        offsets = np.cumsum([0, *(len(n[key]) for n in nodes)]).astype(np.int64)
        return offsets, np.array([dep for n in nodes for dep in n[key]], np.uint64)

    ctrl_offsets, ctrl = waits("ctrl_deps")
    data_offsets, data = waits("data_deps")
    present = [sum(1 << k for k, v in enumerate(n["known"]) if v is not None) for n in nodes]
    known = {
        name: np.array([n["known"][k] or 0 for n in nodes], np.int64)
        for k, (name, _) in enumerate(KNOWN)
        if any(n["known"][k] is not None for n in nodes)
    }
    groups = [n["group"] for n in nodes]
    return _core.ChakraNodes(
        id=np.array([n["id"] for n in nodes], np.uint64),
        type=np.array([n["type"] for n in nodes], np.int32),
        ctrl_offsets=ctrl_offsets,
        ctrl=ctrl,
        data_offsets=data_offsets,
        data=data,
        start=np.array([n["start"] for n in nodes], np.uint64),
        duration=np.array([n["duration"] for n in nodes], np.uint64),
        present=np.array(present, np.uint16),
        names=[n["name"] for n in nodes] if names else [],
        groups=groups if any(groups) else [],
        **known,
    )


def to_protobuf(node) -> Node:
    message = Node(
        id=node["id"],
        name=node["name"],
        type=node["type"],
        ctrl_deps=node["ctrl_deps"],
        data_deps=node["data_deps"],
        start_time_micros=node["start"],
        duration_micros=node["duration"],
    )
    for (name, base), value in zip(KNOWN, node["known"], strict=True):
        if value is not None:
            message.attr.add(name=name, **{f"{base}_val": value})
    if node["group"]:
        message.attr.add(name="pg_name", string_val=node["group"])
    return message


def test_the_published_bytes():
    base = {"start": 0, "duration": 0, "ctrl_deps": [], "data_deps": [], "name": "", "group": ""}
    rest = [None] * (len(KNOWN) - 4)
    nodes = [
        base | {"id": 0, "type": 5, "known": [None, 1, 1 << 20, 3, *rest]},
        base | {"id": 1, "type": 6, "data_deps": [0], "known": [7, None, 1 << 20, 3, *rest]},
        base
        | {"id": 2, "type": 4, "data_deps": [1], "ctrl_deps": [0], "duration": 5}
        | {"known": [None] * len(KNOWN)},
    ]
    assert _core.write_chakra("0.0.4", [], to_core(nodes, names=False)) == VECTOR


@given(st.lists(node_dicts(), max_size=8))
def test_nodes_are_written_as_protobuf_writes_them(nodes):
    expected = b"".join(frame(to_protobuf(n).SerializeToString()) for n in nodes)
    written = _core.write_chakra("", [], to_core(nodes)) if nodes else b"\0"
    assert written == b"\0" + expected


@given(st.data())
def test_metadata_is_written_as_protobuf_writes_it(data):
    metadata = GlobalMetadata(version=data.draw(st.text("0.é", max_size=9)))
    attributes = []
    for name, base in enumerate(data.draw(st.lists(st.sampled_from(sorted(INTEGERS)), max_size=4))):
        values = data.draw(st.lists(st.integers(*INTEGERS[base]), max_size=4))
        attribute = metadata.attr.add(name=f"a{name}")
        getattr(attribute, f"{base}_list").SetInParent()
        getattr(attribute, f"{base}_list").values.extend(values)
        attributes.append((f"a{name}", KIND[base] + 1, np.array(values, np.int64)))
        attribute = metadata.attr.add(name="one", **{f"{base}_val": sum(values[:1])})
        attributes.append(("one", KIND[base], sum(values[:1])))
    metadata.attr.add(name="text", string_val="é")
    metadata.attr.add(name="real", double_val=1.5)
    metadata.attr.add(name="reals").float_list.values.extend([0.5, -2])
    metadata.attr.add(name="texts").bytes_list.values.extend([b"", b"x"])
    attributes += [
        ("text", KIND["string"], "é".encode()),
        ("real", KIND["double"], 1.5),
        ("reals", KIND["float"] + 1, [0.5, -2.0]),
        ("texts", KIND["bytes"] + 1, [b"", b"x"]),
    ]
    content = _core.write_chakra(metadata.version, attributes, to_core([]))
    assert content == frame(metadata.SerializeToString())
    version, found, _ = _core.read_chakra(content)
    assert version.decode() == metadata.version
    assert [(n.decode(), k) for n, k, _ in found] == [a[:2] for a in attributes]
    for (*_, value), (*_, expected) in zip(found, attributes, strict=True):
        assert np.array_equal(np.asarray(value), np.asarray(expected))


@pytest.mark.parametrize(
    "algorithm",
    [ring(4), ring(3, reduce=True), star(5), with_places(), *map(random_algorithm, range(5))],
)
def test_saved_files_are_what_protobuf_would_write(algorithm, tmp_path):
    chakra.save(algorithm, tmp_path / "out")
    for path in (tmp_path / "out").iterdir():
        content = path.read_bytes()
        first, *rest = frames(content)
        again = [frame(GlobalMetadata.FromString(first).SerializeToString())]
        again += [frame(Node.FromString(message).SerializeToString()) for message in rest]
        assert b"".join(again) == content


def _pieces(node, data) -> bytes:
    """The node's fields in any order, repeated ones split, packed or not."""
    pieces = []
    for key, field in (("id", 1), ("type", 3), ("start", 6), ("duration", 7)):
        pieces.append(varint(field << 3) + varint(node[key]))
    pieces.append(Node(name=node["name"]).SerializeToString())
    pieces.append(Node(inputs={"values": "x"}, outputs={}).SerializeToString())
    pieces.append(b"\xa3\x06\x08\x01\xa4\x06")  # an unknown group
    pieces.append(b"\xfd\x07abcd\xf9\x07abcdefgh")  # unknown fixed-size fields
    for (name, _), value in zip(KNOWN, node["known"], strict=True):
        if value is None:
            continue
        fits = [b for b, (low, high) in INTEGERS.items() if low <= value <= high]
        kind = data.draw(st.sampled_from(fits))
        parts = [
            AttributeProto(name=name).SerializeToString(),
            AttributeProto(doc_string="why").SerializeToString(),
            AttributeProto(**{f"{kind}_val": value}).SerializeToString(),
        ]
        pieces.append(b"\x52" + frame(b"".join(data.draw(st.permutations(parts)))))
    if node["group"]:
        message = Node()
        message.attr.add(name="pg_name", string_val=node["group"])
        pieces.append(message.SerializeToString())
    mixed = b"".join(data.draw(st.permutations(pieces)))
    for key, field in (("ctrl_deps", 4), ("data_deps", 5)):
        for dep in node[key]:
            packed = data.draw(st.booleans())
            one = varint(dep)
            mixed += varint(field << 3 | 2) + frame(one) if packed else varint(field << 3) + one
    return mixed


@given(st.data(), st.lists(node_dicts(), max_size=4))
def test_any_order_and_any_integer_kind_is_read(data, nodes):
    content = frame(b"") + b"".join(frame(_pieces(n, data)) for n in nodes)
    _, _, found = _core.read_chakra(content, names=True)
    expected = to_core(nodes)
    for name in COLUMNS:
        wanted = getattr(expected, name)
        assert np.array_equal(getattr(found, name), wanted), name


@pytest.mark.parametrize("base", ["double", "float", "string", "bytes"])
def test_an_integer_attribute_must_be_an_integer(base):
    node = Node(id=1)
    node.attr.add(name="comm_size", **{f"{base}_val": {"string": "5", "bytes": b"5"}.get(base, 5)})
    content = frame(b"") + frame(node.SerializeToString())
    with pytest.raises(ValueError, match=r"byte .*comm_size is not an integer"):
        _core.read_chakra(content)


@given(st.lists(node_dicts(), min_size=1, max_size=3), st.data())
def test_a_cut_file_is_an_error_or_ends_at_a_message(nodes, data):
    content = _core.write_chakra("0.0.4", [], to_core(nodes))
    cut = data.draw(st.integers(0, len(content) - 1))
    ends = np.cumsum([len(frame(m)) for m in frames(content)]).tolist()
    if cut in ends:
        _core.read_chakra(content[:cut])
    else:
        with pytest.raises(ValueError, match=r"^byte "):
            _core.read_chakra(content[:cut])


@given(st.binary(max_size=200))
def test_noise_is_read_or_refused(content):
    with suppress(ValueError):
        _core.read_chakra(content, names=True)


def _waiting(*waits: list[int], ids=None) -> _core.ChakraNodes:
    base = {"start": 0, "duration": 0, "ctrl_deps": [], "name": "", "type": 4, "group": ""}
    base["known"] = [None] * len(KNOWN)
    ids = ids or range(len(waits))
    return to_core([base | {"id": i, "data_deps": w} for i, w in zip(ids, waits, strict=True)])


def test_dependencies_are_checked():
    _waiting([], [0], [1, 0]).check()
    _waiting([9], [], ids=[3, 9]).check()
    with pytest.raises(ValueError, match="node 1 waits for node 5, which is not there"):
        _waiting([], [5]).check()
    with pytest.raises(ValueError, match="node 4 is there twice"):
        _waiting([], [], ids=[4, 4]).check()
    with pytest.raises(ValueError, match="node 1 can never run"):
        _waiting([], [2], [1]).check()


def test_a_long_chain_is_checked_in_linear_time():
    _waiting([], *([i] for i in range(50_000))).check()


def test_every_kind_of_attribute_is_read():
    metadata = GlobalMetadata()
    for name, _ in BASES:
        value = {"string": "1", "bytes": b"1"}.get(name, 1)
        metadata.attr.add(name=name, **{f"{name}_val": value})
        getattr(metadata.attr.add(name=f"{name}s"), f"{name}_list").values.extend([value] * 2)
    _, found, _ = _core.read_chakra(frame(metadata.SerializeToString()))
    for name, kind, value in found:
        listed = name.endswith(b"s") and name != b"bytes"
        assert kind == KIND[name.decode()[:-1] if listed else name.decode()] + listed
        assert set(value if listed else [value]) <= {1, b"1"}
