"""Process groups as people write them: ``0-7``, ``0,8,16``, ``0-56:8``, or ``tp=8,dp=8``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from weft.errors import InputError, unknown_name
from weft.quoting import brief, quoted

_ITEM = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12})(?::([0-9]{1,12}))?)?")
_FACTOR = re.compile(r"([A-Za-z_]\w*)=([0-9]{1,12})")

Numbers = int | str | Sequence[int]


def parse_group(spec: Numbers, count: int, noun: str = "NPU") -> tuple[int, ...]:
    """The numbers a text or a list names, each once and below `count`, in the order given.

    Parameters
    ----------
    spec
        Numbers and ranges joined by commas: ``0-7``, ``0,8,16``, ``0-56:8`` (every eighth), or
        plain numbers.
    count
        How many there are: numbers are 0 to ``count - 1``.
    noun
        What they number, for messages.
    """
    found: dict[int, None] = {}  # in order, and quick to search
    for number in _numbers(spec, count, noun):
        if not 0 <= number < count:
            raise InputError(f"{_quoted(spec)} names {noun} {number}; {noun}s are 0 to {count - 1}")
        if number in found:
            raise InputError(f"{_quoted(spec)} names {noun} {number} twice")
        found[number] = None
    if not found:
        raise InputError(f"no {noun} is named; write them like 0-7, 0,8,16 or 0-56:8")
    return tuple(found)


def _numbers(spec: Numbers, count: int, noun: str) -> Iterator[int]:
    if isinstance(spec, int):
        yield spec
    elif not isinstance(spec, str):
        yield from map(int, spec)
    elif spec.strip():
        for item in spec.split(","):
            yield from _range(item.strip(), count, noun)


def _range(item: str, count: int, noun: str) -> range:
    match = _ITEM.fullmatch(item)
    if not match:
        raise InputError(f"{_quoted(item)} names no {noun}s; write them like 0-7, 0,8,16 or 0-56:8")
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    if last < first:
        raise InputError(f"the range {brief(item)} is reversed; write it like {last}-{first}")
    if step == 0:
        raise InputError(f"the range {brief(item)} has step 0; expected 1 or more")
    numbers = range(first, last + 1, step)
    if numbers[-1] >= count:  # before a long range is walked
        raise InputError(
            f"{_quoted(item)} names {noun} {numbers[-1]}; {noun}s are 0 to {count - 1}"
        )
    return numbers


def _quoted(spec: Numbers) -> str:
    text = str(spec if isinstance(spec, int | str) else list(spec[:20]))
    return quoted(text)


def format_group(numbers: Iterable[int]) -> str:
    """A short text that `parse_group` reads back: rising runs of three or more as ranges."""
    left, items = [int(number) for number in numbers], []
    at = 0
    while at < len(left):
        end = at + 1
        step = left[end] - left[at] if end < len(left) else 0
        while step > 0 and end < len(left) and left[end] - left[end - 1] == step:
            end += 1
        if end - at > 2:
            items.append(f"{left[at]}-{left[end - 1]}" + (f":{step}" if step > 1 else ""))
        else:
            end = at + 1
            items.append(str(left[at]))
        at = end
    return ",".join(items)


def layout_groups(
    layout: str | Mapping[str, int], along: str | Sequence[str], members: Sequence[int]
) -> list[tuple[int, ...]]:
    """The groups that communicate along some dimensions of a parallel layout.

    Parameters
    ----------
    layout
        Names and sizes of the dimensions, such as ``tp=8,dp=8``; the first varies fastest.
    along
        The dimension that communicates, or several (``tp,dp``): a group spans them, and has one
        place in all others.
    members
        The NPUs, in order; their number must be the product of the sizes.

    Examples
    --------
    >>> layout_groups("tp=2,dp=2", "dp", range(4))
    [(0, 2), (1, 3)]
    """
    sizes = _layout(layout)
    names = list(sizes)
    if min(sizes.values(), default=0) < 1:
        raise InputError("a layout has dimensions with sizes from 1 on")
    spanned = [name.strip() for name in along.split(",")] if isinstance(along, str) else list(along)
    for name in spanned:
        if name not in sizes:
            raise unknown_name("dimension", name, names)
    if len(set(spanned)) != len(spanned) or not spanned:
        raise InputError(f"{quoted(','.join(spanned))} does not name dimensions once each")
    product = math.prod(sizes.values())
    if product != len(members):
        shown = ",".join(f"{name}={size}" for name, size in sizes.items())
        raise InputError(f"{brief(shown)} makes {product} ranks, but there are {len(members)} NPUs")
    # The last axis of an array varies fastest, the first name of a layout does.
    grid = np.array(members, dtype=np.int64).reshape(list(sizes.values())[::-1])
    axes = {name: len(names) - 1 - i for i, name in enumerate(names)}
    inner = sorted(axes[name] for name in spanned)
    outer = sorted(set(axes.values()) - set(inner))
    width = math.prod(sizes[name] for name in spanned)
    rows = grid.transpose([*outer, *inner]).reshape(-1, width)
    return [tuple(row) for row in rows.tolist()]


def _layout(layout: str | Mapping[str, int]) -> dict[str, int]:
    if not isinstance(layout, str):
        return dict(layout)
    sizes: dict[str, int] = {}
    for item in layout.split(","):
        match = _FACTOR.fullmatch(item.strip())
        if not match or int(match[2]) == 0:
            raise InputError(f"{_quoted(item)} is no dimension; write a layout like tp=8,dp=4")
        if match[1] in sizes:
            raise InputError(f"dimension {quoted(match[1])} is there twice in {_quoted(layout)}")
        sizes[match[1]] = int(match[2])
    return sizes
