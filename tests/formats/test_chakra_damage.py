"""Damaged folders: every case is one clear sentence that names the file, never a crash."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chakra_samples import ring, star, told, with_places
from chakra_schema import GlobalMetadata, Node, frame, frames
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import FormatError, InputError
from weft.formats import chakra


@pytest.fixture
def saved(tmp_path) -> Path:
    chakra.save(ring(4, reduce=True), tmp_path / "out")
    return tmp_path / "out"


class Edit:
    """One file's messages, to change and write back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        first, *rest = frames(path.read_bytes())
        self.metadata = GlobalMetadata.FromString(first)
        self.nodes = [Node.FromString(message) for message in rest]

    def attribute(self, name):
        return next(a for a in self.metadata.attr if a.name == name)

    def node(self, kind, at=0):
        return [n for n in self.nodes if n.type == kind][at]

    def write(self):
        parts = [frame(m.SerializeToString()) for m in (self.metadata, *self.nodes)]
        self.path.write_bytes(b"".join(parts))


COMP, SEND, RECV = 4, 5, 6


def _set(kind, name, value):
    def change(edit):
        attribute = next(a for a in edit.node(kind).attr if a.name == name)
        setattr(attribute, attribute.WhichOneof("value"), value)

    return change


def _drop(kind):
    return lambda edit: edit.nodes.remove(edit.node(kind, -1))


def _header(**changes):
    def change(edit):
        attribute = edit.attribute("weft.header")
        attribute.string_val = json.dumps(json.loads(attribute.string_val) | changes)

    return change


def _demand(**changes):
    def change(edit):
        attribute = edit.attribute("weft.header")
        header = json.loads(attribute.string_val)
        header["demands"][0] |= changes
        attribute.string_val = json.dumps(header)

    return change


def _waits(kind, *ids):
    def change(edit):
        edit.node(kind, -1).data_deps[:] = ids

    return change


def _column(name, change_values):
    def change(edit):
        change_values(edit.attribute(name).sint64_list.values)

    return change


def _swap_attribute(name, **value):
    def change(edit):
        attribute = edit.attribute(name)
        attribute.Clear()
        attribute.name = name
        for key, one in value.items():
            setattr(attribute, key, one)

    return change


CASES = {
    "size differs": (_set(SEND, "comm_size", 7), "receives .* B of row 0, but .* sends 7 B"),
    "tag too large": (_set(SEND, "comm_tag", 999), "node 0 has row 999, but rows are 0 to 23"),
    "tag twice": (_set(SEND, "comm_tag", 4), "has row 4, which another node has"),
    "other receiver": (_set(SEND, "comm_dst", 2), "sends row 0 to NPU 2, but NPU 1 receives it"),
    "to itself": (_set(SEND, "comm_dst", 0), "node 0 names 0 as the other NPU"),
    "no send": (_drop(SEND), r"node \d+ is missing"),
    "dangling": (_waits(SEND, 77), "waits for node 77, which is not there"),
    "itself": (lambda e: e.node(COMP).data_deps.append(e.node(COMP).id), "form a cycle"),
    "other waits": (_waits(SEND), "other data dependencies"),
    "no tag": (lambda e: e.node(SEND).attr.pop(), "node 0 lacks one of"),
    "other type": (lambda e: setattr(e.node(SEND), "type", 7), "node 0 is of type 7"),
    "twice": (lambda e: setattr(e.nodes[2], "id", 1), "node 1 is there twice"),
    "sum of nothing": (lambda e: e.node(COMP).data_deps.pop(0), "waits for nothing"),
    "no version": (_swap_attribute("weft.version"), "weft.version is missing or of another kind"),
    "newer": (_swap_attribute("weft.version", int64_val=3), "version 3 of the schema"),
    "renamed": (_swap_attribute("weft.npu", int64_val=3), "the trace of NPU 3, renamed"),
    "no chunks": (_swap_attribute("weft.chunk"), "weft.chunk is missing"),
    "long": (_column("weft.chunk", lambda v: v.append(0)), "weft.chunk has 7 entries"),
    "chunk": (_column("weft.chunk", lambda v: v.insert(0, v.pop(0) + 9)), "expected 0 to 3"),
    "start": (_column("weft.start_ps", lambda v: v.insert(0, v.pop(0) + 9)), "checksum"),
    "no json": (_swap_attribute("weft.header", string_val="{"), "weft.header is damaged"),
    "deep json": (_swap_attribute("weft.header", string_val="[" * 99999), "header is damaged"),
    "header type": (_header(rows="many"), "weft.header is damaged"),
    "rows": (_header(rows=10**15), "too small to hold"),
    "fewer rows": (_header(rows=5), "but rows are 0 to 4"),
    "more rows": (_header(rows=25), "there are 25 rows, but no node has row 24"),
    "npus": (_header(npus=10**12), r"weft\.4\.et is missing: there are 1000000000000 NPUs"),
    "fewer npus": (_header(npus=3), r"weft\.3\.et is of no NPU: there are 3"),
    "columns": (_header(columns=["route"]), "some of the columns of time"),
    "strange column": (_header(columns=["colour"]), "unknown meaning"),
    "untimed": (_header(columns=[]), "checksum"),
    "no cost": (_header(cost=None), "needs a topology, routes and a cost model"),
    "strange cost": (_header(cost={"latency_model": "x", "switching": "y"}), "unknown latency"),
    "no topology": (_header(topology=None), "routes but no topology"),
    "switches": (
        _header(topology={"name": "", "npus": 4, "switches": 10**15, "removed": []}),
        "NPUs and [0-9]+ switches make no sense",
    ),
    "removed": (
        _header(topology={"name": "", "npus": 4, "switches": 0, "removed": [4]}),
        "a removed NPU is none of the topology's",
    ),
    "chunks": (_demand(chunks_per_share=1 << 25), "make no sense"),
    "ranks": (_demand(ranks=1 << 40), "make no sense"),
    "kind": (_demand(kind="all-regather"), "did you mean 'all-gather'"),
    "size": (_demand(size=10**30), "out of range"),
    "other size": (_demand(size=4100), "but chunk 0 has"),
    "no speed": (_column("weft.speed_bandwidth", lambda v: v.pop()), "differ in length"),
    "zero speed": (_column("weft.speed_bandwidth", lambda v: v.__setitem__(0, 0)), "bandwidth"),
    "link": (
        _column("weft.link_dst", lambda v: v.__setitem__(0, 10**12)),
        r"weft\.0\.et: link_dst",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_contradiction_is_named(case, saved):
    change, message = CASES[case]
    edit = Edit(saved / "weft.0.et")
    change(edit)
    edit.write()
    with pytest.raises(FormatError, match=message) as caught:
        chakra.load(saved)
    assert "weft." in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_rank_is_named(saved):
    (saved / "weft.2.et").unlink()
    with pytest.raises(FormatError, match=r"weft\.2\.et is missing"):
        chakra.load(saved)
    (saved / "weft.0.et").unlink()
    with pytest.raises(FormatError, match=r"weft\.0\.et is missing"):
        chakra.load(saved)


def test_a_folder_must_be_one(tmp_path):
    with pytest.raises(FormatError, match=r"cannot read .*No such file"):
        chakra.load(tmp_path / "nowhere")
    with pytest.raises(FormatError, match="holds no trace"):
        chakra.load(tmp_path)
    (tmp_path / "weft.0.et").mkdir()
    with pytest.raises(FormatError, match=r"weft\.0\.et is not a file"):
        chakra.load(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "byte 0: the file is empty"),
        (b"\0", "not a trace of Weft"),
        (b"<xml> not a trace", "byte 0: a length of 60 bytes"),
        (b"\xff" * 40, "byte 0: a number has more than 10 bytes"),
    ],
)
def test_another_kind_of_file_is_refused(content, message, saved):
    (saved / "weft.0.et").write_bytes(content)
    with pytest.raises(FormatError, match=message):
        chakra.load(saved)


def test_a_rank_of_another_algorithm_is_noticed(saved, tmp_path):
    other = ring(4, reduce=True)
    other = replace(other, rows=replace(other.transfers, start=other.transfers.start + 5))
    chakra.save(other, tmp_path / "other")
    (saved / "weft.1.et").write_bytes((tmp_path / "other" / "weft.1.et").read_bytes())
    with pytest.raises(FormatError, match="another algorithm"):
        chakra.load(saved)


def test_nodes_may_stand_in_any_order(saved):
    edit = Edit(saved / "weft.1.et")
    edit.nodes.reverse()
    edit.write()
    assert len(chakra.load(saved).transfers) == 24


def _topology(folder, **changes):
    edit = Edit(folder / "weft.0.et")
    attribute = edit.attribute("weft.header")
    header = json.loads(attribute.string_val)
    header["topology"] |= changes
    header["topology"] = {k: v for k, v in header["topology"].items() if v is not None}
    attribute.string_val = json.dumps(header)
    edit.write()


def test_switches_of_older_traces_have_no_limit_and_only_forward(saved):
    _topology(saved, buffers=None, copying=None, adding=None)
    network = chakra.load(saved).topology
    assert not network.buffers
    assert network.plain is network


def test_older_traces_have_no_dimensions(saved):
    _topology(saved, dimensions=[2, 2])
    assert chakra.load(saved).topology.dimensions == (2, 2)
    _topology(saved, dimensions=None)
    assert chakra.load(saved).topology.dimensions == ()


def test_dimensions_that_do_not_fit_are_refused(saved):
    _topology(saved, dimensions=[2, 2, 2])
    with pytest.raises(FormatError, match=r"dimensions \[2, 2, 2\] do not fit"):
        chakra.load(saved)


def test_a_buffer_of_no_switch_is_refused(saved):
    _topology(saved, buffers=[[1, 5]])
    with pytest.raises(FormatError, match="node 1 has a buffer but is no switch"):
        chakra.load(saved)


def test_every_cut_is_noticed(saved):
    path = saved / "weft.3.et"
    content = path.read_bytes()
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(FormatError, match=r"weft\.3\.et|nobody"):
            chakra.load(saved)


@pytest.mark.parametrize("algorithm", [ring(3, reduce=True), star(4), told(), with_places()])
@given(seed=st.integers(0, 2**32))
def test_any_changed_bytes_load_or_are_refused(algorithm, seed):
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chakra.save(algorithm, folder)
        npus = len(list(folder.iterdir()))
        path = folder / f"weft.{rng.choice([0, rng.integers(npus)])}.et"
        content = bytearray(path.read_bytes())
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(content)))
            match rng.integers(3):
                case 0:
                    content[at] = int(rng.integers(256))
                case 1:
                    content[at] ^= 1 << int(rng.integers(8))
                case _:
                    content[at : at + int(rng.integers(3))] = rng.bytes(int(rng.integers(3)))
        path.write_bytes(bytes(content))
        with suppress(FormatError, InputError):
            chakra.load(folder)
