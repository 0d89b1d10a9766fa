"""Plans, patterns and matrices: what they mean, and what is wrong named with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.collective import Collective, Move, all_to_allv, custom, permutation
from weft.collective.files import load_matrix, load_pattern, load_plan
from weft.errors import FormatError, WeftError
from weft.topology import load_topology

NETWORK = load_topology("mesh:4x4", without_npus=[15])

PLAN = """\
- {collective: all-reduce, size: 1MiB, group: 0-3}
- collective: broadcast
  size: 4096
  group: [9, 8]
  root: 8
  chunks: 4
  relay: false
- collective: all-to-allv
  group: 4-6
  matrix: [[0, 1kB, 2], [0, 0, 3B], [1, 1, 1]]
- {collective: permutation, size: 64, group: "5,6", to: "1,0", chunks: auto}
- collective: custom
  group: 0-8:4
  moves:
    - {size: 1kB, from: 0, to: 1-2}
    - {size: 500, from: [0, 1], to: 2, reduce: true}
- {collective: all-gather, size: 16}
"""

shared_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(folder: Path, text: str | bytes, name: str = "plan.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_plan(tmp_path: Path) -> None:
    plan = load_plan(write(tmp_path, PLAN), NETWORK)
    assert plan.chunks == [None, 4, None, None, None, None]
    assert plan.collectives == [
        Collective.of("all-reduce", range(4), 1 << 20),
        Collective.of("broadcast", [9, 8], 4096, root=8, relay=False),
        all_to_allv([4, 5, 6], [[0, 1000, 2], [0, 0, 3], [1, 1, 1]]),
        permutation([5, 6], 64, [1, 0]),
        custom([0, 4, 8], [Move(1000, (0,), (1, 2)), Move(500, (0, 1), (2,), reduce=True)]),
        Collective.of("all-gather", range(15), 16),
    ]
    as_json = write(tmp_path, json.dumps(yaml.safe_load(PLAN)), "plan.json")
    assert load_plan(as_json, NETWORK) == plan
    assert load_plan(as_json, NETWORK, alignment=4).collectives[0].alignment == 4


def test_a_pattern(tmp_path: Path) -> None:
    text = "- {size: 1MiB, from: 0, to: '1-3'}\n- {size: 8, from: [1, 2], to: 0, reduce: true}\n"
    assert load_pattern(write(tmp_path, text), 4) == [
        Move(1 << 20, (0,), (1, 2, 3)),
        Move(8, (1, 2), (0,), reduce=True),
    ]


SIZES = st.sampled_from([("0", 0), ("7", 7), ("1kB", 1000), (" 2MiB ", 2 << 20), ("0B", 0)])


@shared_folder
@given(st.data(), st.integers(1, 4), st.booleans())
def test_a_matrix_in_any_format(
    tmp_path: Path, data: st.DataObject, ranks: int, blank: bool
) -> None:
    row = st.lists(SIZES, min_size=ranks, max_size=ranks)
    cells = data.draw(st.lists(row, min_size=ranks, max_size=ranks))
    texts = [[text for text, _ in line] for line in cells]
    expected = [[size for _, size in line] for line in cells]
    lines = "\n".join(",".join(line) for line in texts) + "\n" * (2 if blank else 0)
    for name, content in (
        ("m.csv", lines),
        ("m.csv", lines.replace("\n", "\r\n")),
        ("m.json", json.dumps(texts)),
        ("m.json", json.dumps(expected)),
        ("m.yaml", yaml.safe_dump(texts)),
    ):
        assert load_matrix(write(tmp_path, content, name)).tolist() == expected


WRONG_PLANS = [
    ("", "is not a plan: expected a list of groups"),
    ("[]", "is not a plan"),
    ("collective: all-reduce", "is not a plan"),
    ("- all-reduce", "line 1: group 0 is wrong: expected object, got str"),
    ("- {size: 1MiB}", "line 1: group 0 has no collective"),
    ("- {collective: all-gather, size: 1MiB}\n- {collective: al-gather, size: 1}",
     "line 2: group 1: unknown collective 'al-gather'; did you mean 'all-gather'?"),
    ("- {collective: all-gather}", "line 1: group 0: all-gather needs size"),
    ("- {collective: all-gather, sizes: 1}",
     "line 1: group 0 has an unknown key 'sizes'; did you mean 'size'?"),
    ("- collective: all-gather\n  size: much", "line 1: group 0: size 'much' is not a number"),
    ("- collective: all-gather\n  size: [1]", "line 2: group 0: size is wrong: expected"),
    ("- collective: all-gather\n  size: 1\n  group: 7-0",
     "line 3: group 0: the range 7-0 is reversed"),
    ("- collective: all-gather\n  size: 1\n  group: 0-999999999",
     "line 3: group 0: '0-999999999' names NPU 999999999; NPUs are 0 to 15"),
    ("- collective: all-gather\n  size: 1\n  group: [3, 3]",
     "line 3: group 0: '[3, 3]' names NPU 3 twice"),
    ("- collective: all-gather\n  size: 1\n  group: []", "line 3: group 0: no NPU is named"),
    ("- collective: all-gather\n  size: 1\n  group: 15",
     "line 3: group 0: mesh:4x4 has no NPU 15, which is in the group"),
    ("- collective: all-gather\n  size: 1\n  chunks: 0",
     "line 3: group 0: all-gather: 0 chunks per share; expected 1 to"),
    ("- collective: all-gather\n  size: 1\n  chunks: some",
     "line 3: group 0: chunks is 'some'; expected a whole number or auto"),
    ("- {collective: all-gather, size: 1, root: 0}", "line 1: group 0: all-gather has no root"),
    ("- {collective: reduce, size: 1, root: 9, group: 0-3}",
     "group 0: reduce: root 9 is not an NPU of the group"),
    ("- {collective: all-gather, size: 1, matrix: [[1]]}",
     "group 0: all-gather takes no matrix, only size"),
    ("- {collective: all-to-allv, size: 1, matrix: [[1]]}",
     "group 0: all-to-allv takes no size, only matrix"),
    ("- {collective: permutation, to: 0}", "group 0: permutation needs size and to"),
    ("- {collective: custom, size: 1, moves: []}", "group 0: custom takes no size, only moves"),
    ("- {collective: custom, moves: []}", "group 0: custom: nothing moves"),
    ("- collective: custom\n  group: 0-1\n  moves:\n  - {size: 0, from: 0, to: 1}",
     "line 4: group 0: move 0: size '0' is out of range"),
    ("- collective: custom\n  group: 0-1\n  moves:\n  - {size: 1, from: 0, to: 2}",
     "line 4: group 0: move 0: '2' names rank 2; ranks are 0 to 1"),
    ("- collective: custom\n  group: 0-1\n  moves:\n  - {size: 1, form: 0, to: 1}",
     "line 4: group 0: move 0 has an unknown key 'form'; did you mean 'from'?"),
    ("- collective: all-to-allv\n  group: 0-1\n  matrix:\n  - [1, 2]\n  - [1]",
     "line 5: group 0: row 1 has 1 sizes where row 0 has 2"),
    ("- collective: all-to-allv\n  group: 0-1\n  matrix: [[1, 2]]",
     "line 1: group 0: all-to-allv: the matrix has shape (1, 2)"),
    ("- {collective: permutation, size: 1, group: 0-1, to: [0, 0]}", "names rank 0 twice"),
    ("- {collective: permutation, size: 1, group: 0-1, to: [0]}", "does not name each rank"),
    ("- {1: 2}", "plan.yaml"),
    ('- {collective: "a\\nb", size: 1}', "line 1: group 0: unknown collective 'a\\nb'"),
    ("- [", "line 1: not valid YAML"),
    ("- &a {collective: reduce, size: 1}\n- *a", "line 2: aliases"),
    (b"\xff", "line 1: is not UTF-8"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG_PLANS)
def test_wrong_plans(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        load_plan(write(tmp_path, text), NETWORK)
    assert message in str(caught.value)
    assert "plan.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("m.csv", "1,2\n\n3,x\n", "m.csv line 3: row 1: size 'x' is not a number"),
        ("m.csv", "1,2\n3\n", "m.csv line 2: row 1 has 1 sizes where row 0 has 2"),
        ("m.csv", "1,-2\n3,4\n", "m.csv line 1: row 0: size '-2' is out of range"),
        ("m.csv", "1,\n3,4\n", "m.csv line 1: row 0: size '' is not a number"),
        ("m.csv", "\n\n", "m.csv: is not a matrix"),
        ("m.csv", "1,nan\n", "row 0: size 'nan'"),
        ("m.json", "[[1, null]]", "m.json line 1: row 0 is wrong: expected"),
        ("m.json", "[[1, true]]", "m.json line 1: row 0 is wrong: expected"),
        ("m.json", "[1, 2]", "m.json line 1: row 0 is wrong: expected array, got int"),
        ("m.json", "{}", "m.json: is not a matrix: expected a list of rows"),
        ("m.yaml", "- [1, 2]\n- [1, 2EB]\n", "m.yaml line 2: row 1: size '2EB' has no unit"),
    ],
)
def test_wrong_matrices(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        load_matrix(write(tmp_path, text, name))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1", "line 1: move 0 is wrong: expected object, got int"),
        ("- {from: 0, to: 1}", "line 1: move 0 has no size"),
        ("- {size: 1, from: 0}", "line 1: move 0 has no to"),
        ("- {size: 1, from: 0, to: 1, reduce: 1}", "line 1: move 0: reduce is wrong: expected bo"),
        ("- size: 1\n  from: 0-999999999999\n  to: 1", "line 2: move 0: '0-999999999999' names"),
        ("moves: []", "is not a pattern: expected a list of moves"),
    ],
)  # fmt: skip
def test_wrong_patterns(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        load_pattern(write(tmp_path, text), 4)
    assert message in str(caught.value)


@shared_folder
@given(st.data())
def test_damaged_plans(tmp_path: Path, data: st.DataObject) -> None:
    """A plan with some letters lost or changed is read or refused, in YAML as in JSON."""
    as_json = data.draw(st.booleans())
    text = bytearray((json.dumps(yaml.safe_load(PLAN)) if as_json else PLAN).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        kept = data.draw(st.integers(0, 5))
        text[at : at + kept] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b"-", b"[", b"9"])
        )
    path = write(tmp_path, bytes(text), "plan.json" if as_json else "plan.yaml")
    try:
        load_plan(path, NETWORK)
    except WeftError as error:
        lines = str(error).splitlines()
        if len(lines) != 1:
            pytest.fail(f"not one sentence: {lines}")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*"abc", "collective", "group", "size", "moves", "matrix", "to"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@shared_folder
@given(PLAIN, st.sampled_from(["group", "size", "chunks", "root", "matrix", "to", "moves", "from"]))
def test_any_value_anywhere(tmp_path: Path, value: object, key: str) -> None:
    move = {"size": 1, "from": 0, "to": 1} | {key: value}
    for loaded in ([{"collective": "all-gather", "size": 8, key: value}], [move], value):
        path = write(tmp_path, yaml.safe_dump(loaded))
        for load in (
            lambda: load_plan(path, NETWORK),  # noqa: B023 - called at once
            lambda: load_pattern(path, 4),  # noqa: B023
            lambda: load_matrix(path),  # noqa: B023
        ):
            try:
                load()
            except WeftError as error:
                if len(str(error).splitlines()) != 1:
                    pytest.fail(f"not one sentence: {error}")
