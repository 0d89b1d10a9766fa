"""Groups as text and as layouts, against slow oracles."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.collective import format_group, layout_groups, parse_group
from weft.errors import InputError

COUNT = 100


@st.composite
def items(draw: st.DrawFn) -> tuple[str, list[int]]:
    """A number or a range as text, and the numbers it stands for, one step at a time."""
    first = draw(st.integers(0, COUNT - 1))
    blank = st.sampled_from(["", " "])
    if draw(st.booleans()):
        return f"{draw(blank)}{first}{draw(blank)}", [first]
    last, step = draw(st.integers(first, COUNT - 1)), draw(st.integers(1, COUNT))
    numbers = []
    while first <= last:
        numbers.append(first)
        first += step
    suffix = f":{step}" if step > 1 or draw(st.booleans()) else ""
    return f"{draw(blank)}{numbers[0]}-{last}{suffix}{draw(blank)}", numbers


@given(st.lists(items(), min_size=1, max_size=5))
def test_texts_mean_what_they_say(parts: list[tuple[str, list[int]]]) -> None:
    text = ",".join(item for item, _ in parts)
    numbers = [number for _, each in parts for number in each]
    if len(set(numbers)) == len(numbers):
        assert list(parse_group(text, COUNT)) == numbers
    else:
        with pytest.raises(InputError, match="twice"):
            parse_group(text, COUNT)


@given(st.lists(st.integers(0, COUNT - 1), min_size=1, unique=True))
def test_what_is_written_reads_back(numbers: list[int]) -> None:
    assert list(parse_group(format_group(numbers), COUNT)) == numbers
    assert list(parse_group(numbers, COUNT)) == numbers


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([5], "5"),
        ([5, 6], "5,6"),
        (range(8), "0-7"),
        (range(0, 57, 8), "0-56:8"),
        ([0, 1, 2, 9, 5, 6, 7, 3, 1000], "0-2,9,5-7,3,1000"),
        ([3, 2, 1, 0], "3,2,1,0"),
        ([0, 2, 3, 4, 5], "0,2-5"),
    ],
)
def test_short_texts(numbers: list[int], text: str) -> None:
    assert format_group(numbers) == text


@given(st.text(alphabet="0123456789-:, x", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        numbers = parse_group(text, COUNT)
    except InputError:
        return
    assert numbers
    assert set(numbers) <= set(range(COUNT))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "no NPU is named"),
        ("  ", "no NPU is named"),
        ([], "no NPU is named"),
        ("3,", "'' names no NPUs"),
        ("3,,4", "'' names no NPUs"),
        ("x", "'x' names no NPUs; write them like"),
        ("-3", "'-3' names no NPUs"),
        ("0-7:", "names no NPUs"),
        ("0-7:2:2", "names no NPUs"),
        ("1.5", "names no NPUs"),
        ("٣", "names no NPUs"),
        ("9" * 5000, "..."),
        ("7-0", "the range 7-0 is reversed; write it like 0-7"),
        ("0-7:0", "step 0"),
        ("5,1-9", "'5,1-9' names NPU 5 twice"),
        ("4,4", "names NPU 4 twice"),
        ([4, 4], "'[4, 4]' names NPU 4 twice"),
        ("100", "'100' names NPU 100; NPUs are 0 to 99"),
        ("0-999999999999", "names NPU 999999999999; NPUs are 0 to 99"),
        ([3, -1], "names NPU -1; NPUs are 0 to 99"),
        (100, "'100' names NPU 100"),
    ],
)
def test_wrong_groups(spec: str | int | list[int], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_group(spec, COUNT)
    assert message in str(caught.value)


@given(st.data(), st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_layouts_by_coordinates(data: st.DataObject, sizes: list[int]) -> None:
    names = [f"d{i}" for i in range(len(sizes))]
    along = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    total = math.prod(sizes)
    members = sorted(data.draw(st.sets(st.integers(0, 500), min_size=total, max_size=total)))
    text = ",".join(f"{name}={size}" for name, size in zip(names, sizes, strict=True))
    groups = layout_groups(text, ",".join(along), members)
    assert groups == layout_groups(dict(zip(names, sizes, strict=True)), along, members)
    # Two NPUs share a group if they differ in nothing but what communicates.
    coordinates = [
        tuple(rank // math.prod(sizes[:i]) % size for i, size in enumerate(sizes))
        for rank in range(total)
    ]
    group_of = {npu: number for number, group in enumerate(groups) for npu in group}
    assert sorted(group_of) == members
    for a, b in itertools.combinations(range(total), 2):
        fixed = [i for i, name in enumerate(names) if name not in along]
        together = all(coordinates[a][i] == coordinates[b][i] for i in fixed)
        assert together == (group_of[members[a]] == group_of[members[b]])
    assert all(list(group) == sorted(group) for group in groups)
    assert groups == sorted(groups)


@pytest.mark.parametrize(
    ("layout", "along", "message"),
    [
        ("tp=8,dp=4", "tp", "tp=8,dp=4 makes 32 ranks, but there are 64 NPUs"),
        ("tp=999999999999,dp=999999999999", "tp", "but there are 64 NPUs"),
        ("tp=8,dp=8", "pp", "unknown dimension 'pp'"),
        ("tp=8,dp=8", "", "unknown dimension ''"),
        ("tp=8,dp=8", "tp,tp", "does not name dimensions once each"),
        ("tp=8,dp=8", [], "does not name dimensions once each"),
        ("tp=8,tp=8", "tp", "dimension 'tp' is there twice"),
        ("tp=0,dp=8", "tp", "'tp=0' is no dimension; write a layout like tp=8,dp=4"),
        ("tp8", "tp", "is no dimension"),
        ("", "tp", "is no dimension"),
        ("tp=-8,dp=-8", "tp", "is no dimension"),
        ({"tp": -8, "dp": -8}, "tp", "sizes from 1 on"),
    ],
)
def test_wrong_layouts(layout: str | dict[str, int], along: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        layout_groups(layout, along, range(64))
    assert message in str(caught.value)


def test_ranks_are_places_among_the_npus_present() -> None:
    present = [0, 1, 2, 4]
    assert layout_groups("tp=2,dp=2", "tp", present) == [(0, 1), (2, 4)]
