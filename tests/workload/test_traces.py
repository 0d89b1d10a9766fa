"""Bad workloads: one sentence that names file and place, whatever the bytes."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.formats.chakra_schema import GlobalMetadata, Node, frame
from tests.workload.traces import COLL, COMP, make, random_workload, write
from weft import FormatError, InputError, WeftError, _core
from weft.workload import load_workload, lower

AR = {"comm_type": 0, "comm_size": 64}


def refusal(folder: Path, network: str = "ring:4", **options) -> str:
    with pytest.raises(WeftError) as caught:
        lower(folder, network, **options)
    return str(caught.value).replace(f"{folder}/", "").replace(str(folder), "W")


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        ([make(1, COMP), make(1, COLL, **AR)], "w.0.et: node 1 is there twice"),
        ([make(1, COMP, [9])], "w.0.et: node 1 waits for node 9, which is not there"),
        (
            [make(1, COMP, [2]), make(2, COLL, [1], **AR)],
            "w.0.et: node 1 can never run: dependencies form a cycle",
        ),
        (
            [make(4, COLL, **AR, pg_name="3")],
            "w.0.et: node 4 is a collective of group '3', which neither the trace nor a comm-group"
            " file describes; give one with --comm-group",
        ),
        (
            [make(4, COLL, **AR, pg_name="a\nb" + "é" * 99)],
            "w.0.et: node 4 is a collective of group 'a\\nb" + "é" * 74 + "...', which "
            "neither the trace nor a comm-group file describes; give one with --comm-group",
        ),
    ],
)
def test_one_bad_trace(tmp_path: Path, nodes: list, sentence: str):
    assert refusal(write(tmp_path / "w", [nodes])) == sentence


@pytest.mark.parametrize(
    ("name", "kind", "value", "expected"),
    [
        ("comm_type", "double_val", 0.0, "an integer of 63 bits"),
        ("comm_size", "string_val", "64", "an integer of 63 bits"),
        ("comm_size", "uint64_val", 1 << 63, "an integer of 63 bits"),
        ("pg_name", "int64_val", 1, "a text"),
        ("pg_name", "bytes_val", b"1", "a text"),
    ],
)
def test_attributes_of_the_wrong_kind(tmp_path: Path, name, kind, value, expected):
    node = make(7, COLL)
    node.attr.add(name=name, **{kind: value})
    folder = write(tmp_path / "w", [[node]])
    assert refusal(folder) == f"w.0.et: node 7: attribute {name} is not {expected}"
    other = Node(id=7, type=COMP)  # of no interest on a node that is no collective
    other.attr.add(name=name, **{kind: value})
    assert load_workload(write(tmp_path / "o", [[other]])).ranks == 1


@pytest.mark.parametrize("kind", ["int32_val", "uint32_val", "sint64_val", "fixed64_val"])
def test_any_integer_kind_is_read(tmp_path: Path, kind: str):
    node = make(7, COLL, comm_type=0)
    node.attr.add(name="comm_size", **{kind: 64})
    frames = load_workload(write(tmp_path / "w", [[node]])).traces[0].frames
    assert frames.size.tolist() == [64]


def test_members_must_do_the_same(tmp_path: Path):
    one = [make(1, COLL, **AR), make(2, COLL, comm_type=2, comm_size=8)]
    other = [make(5, COLL, **AR), make(6, COLL, comm_type=0, comm_size=2048)]
    folder = write(tmp_path / "w", [one, one, other])
    assert refusal(folder) == (
        "w.2.et: node 6 is all-reduce of 2KiB, but collective 1 of group '0' is all-gather of 8B "
        "in w.0.et: node 2"
    )
    folder = write(tmp_path / "x", [one, one[:1]])
    assert refusal(folder) == ("w.0.et: node 2 is collective 1 of group '0', but rank 1 has only 1")
    folder = write(tmp_path / "y", [one, [make(0, COMP)]])
    assert refusal(folder) == (
        "w.0.et: node 1 is a collective of group '0', in which rank 1 does nothing"
    )


def test_the_order_is_that_of_issue(tmp_path: Path):
    """Ids that fall along dependencies: what waits comes later all the same."""
    big, small = {"comm_type": 0, "comm_size": 64}, {"comm_type": 0, "comm_size": 32}
    falling = [make(1, COLL, [9], **small), make(9, COLL, **big)]
    rising = [make(1, COLL, **big), make(9, COLL, [1], **small)]
    assert lower(write(tmp_path / "w", [falling, rising]), "ring:2").lowered == 2


def test_file_sets(tmp_path: Path):
    node = make(0, COMP)
    folder = write(tmp_path / "w", [[node]] * 3)
    (folder / "w.1.et").unlink()
    assert refusal(folder).startswith("w.1.et is missing: there are 2 traces, so their ranks")
    (tmp_path / "none").mkdir()
    assert "there is no trace of rank 0" in refusal(tmp_path / "none")
    assert "cannot read W: No such file" in refusal(tmp_path / "no" / "such")
    folder = write(tmp_path / "five", [[node]] * 5)
    assert refusal(folder) == "w has 5 ranks, but ring:4 only 4 NPUs"
    (folder / "w.05.et").write_bytes(b"")  # not a name that ASTRA-sim would open
    assert load_workload(folder).ranks == 5


def test_a_folder_in_the_place_of_a_trace(tmp_path: Path):
    folder = write(tmp_path / "w", [[make(0, COMP)]])
    (folder / "w.1.et").mkdir()
    assert refusal(folder).startswith("w.1.et is not a file")


def test_the_output_is_not_the_workload(tmp_path: Path):
    folder = write(tmp_path / "w", [[make(0, COMP)]])
    with pytest.raises(FormatError, match="the workload itself is there"):
        lower(folder, "ring:2").save(folder / ".." / "w")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "diary.txt").write_text("mine")
    with pytest.raises(FormatError, match=r"it holds diary\.txt"):
        lower(folder, "ring:2").save(tmp_path / "other")


def test_a_trace_that_changes_meanwhile(tmp_path: Path):
    folder = write(tmp_path / "w", [[make(0, COLL, **AR)]])
    result = lower(folder, "ring:2")
    (folder / "w.0.et").write_bytes(b"\0")
    with pytest.raises(FormatError, match=r"w\.0\.et: has changed since"):
        result.save(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[1]", "comm_group.json: expected an object of lists of ranks"),
        ('{"1": [0, 1.5]}', "comm_group.json: expected an object of lists of ranks"),
        ('{"1": []}', "comm_group.json line 1: group '1' has no ranks"),
        ('{\n"1": [0, 0]}', "comm_group.json line 2: group '1' names a rank twice"),
        ('{"1": [0, 7]}', "comm_group.json line 1: group '1' names rank 7; ranks are 0 to 1"),
        ('{"1": [-1]}', "comm_group.json line 1: group '1' names rank -1; ranks are 0 to 1"),
        ('{"1": [0', "comm_group.json line 1: not valid JSON"),
        ('{"1": [0]}', "w.1.et: node 0 is a collective of group '1', but rank 1 is not in it"),
    ],
)
def test_comm_group_files(tmp_path: Path, text: str, sentence: str):
    node = make(0, COLL, **AR, pg_name="1")
    folder = write(tmp_path / "w", [[node], [node]])
    (folder / "comm_group.json").write_text(text)
    assert refusal(folder).startswith(sentence)


def torch_node(text: str) -> Node:
    node = Node(id=90, name="## process_group:init ##", type=1)
    node.inputs.values = text
    return node


GROUPS = json.dumps(
    [
        {"pg_name": "0", "pg_desc": "default_pg", "ranks": [], "group_size": 4, "group_count": 3},
        {"pg_name": "3", "pg_desc": "undefined", "ranks": [3, 1], "group_size": 2},
        {"pg_name": "mesh_tp", "ranks": [0, 2], "group_size": 2},
    ]
)


@pytest.mark.parametrize("text", [GROUPS, f"['{GROUPS}']", f"[[{GROUPS}]]"])
def test_groups_that_pytorch_wrote(tmp_path: Path, text: str):
    def rank(group: str) -> list[Node]:
        return [
            torch_node(text),
            make(1, COLL, **AR, pg_name=group),
            make(2, COLL, comm_type=2, comm_size=8, pg_name="0"),
        ]

    folder = write(tmp_path / "w", [rank(g) for g in ("mesh_tp", "3", "mesh_tp", "3")])
    jobs = [job.groups for job in lower(folder, "ring:4").algorithms]
    assert jobs == [((0, 2), (3, 1)), ((0, 1, 2, 3),)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[{]}]", "the node that sets up process groups holds no JSON list of them"),
        ('[{"pg_name": 3, "ranks": []}]', "a process group's pg_name is no text"),
        ('[{"pg_name": "3"}]', "a process group's pg_name is no text"),
        ('[{"pg_name": "3", "ranks": [true]}]', "a process group's pg_name is no text"),
        ('[{"pg_name": "3", "ranks": [9]}]', "group '3' names rank 9; ranks are 0 to 0"),
        ("[{" * 5000, "the node that sets up process groups holds no JSON list of them"),
    ],
)
def test_groups_that_pytorch_did_not_write(tmp_path: Path, text: str, sentence: str):
    folder = write(tmp_path / "w", [[torch_node(text)]])
    assert refusal(folder).startswith(f"w.0.et: {sentence}")


def sample_bytes(seed: int) -> bytes:
    nodes = random_workload(seed).ranks[0]
    return frame(GlobalMetadata().SerializeToString()) + b"".join(
        frame(node.SerializeToString()) for node in nodes
    )


@given(st.integers(0, 50), st.data())
@examples(150)
def test_damaged_traces_are_refused_or_read(seed: int, data: st.DataObject):
    content = bytearray(sample_bytes(seed))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    for text in (bytes(content), bytes(content[:cut])):
        with suppress(ValueError):
            frames = _core.read_frames(text)
            for begin, end in zip(frames.begin.tolist(), frames.end.tolist(), strict=True):
                assert 0 <= begin < end <= len(text)


def test_choices_that_make_no_sense(tmp_path: Path):
    folder = write(tmp_path / "w", [[make(0, COMP)]])
    with pytest.raises(InputError, match="unknown collective to lower 'all-redcue'; did you mean"):
        lower(folder, "ring:2", only=["all-redcue"])
    with pytest.raises(InputError, match="size '-1'"):
        lower(folder, "ring:2", min_size="-1")
