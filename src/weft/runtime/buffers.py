"""What a user gives to a run: arrays, their type, and how many elements a collective has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, Buffer
from weft.algorithm.transfers import PLACE_BITS
from weft.collective import Collective
from weft.errors import InputError, unknown_name
from weft.runtime.cutting import Sides

Array = NDArray[Any]

TYPES: dict[str, tuple[_core.ElementType, np.dtype[Any]]] = {
    name: (getattr(_core.ElementType, name), np.dtype(word))
    for name, word in {
        "f16": "float16",
        "bf16": "uint16",
        "f32": "float32",
        "f64": "float64",
        **{
            f"{letter}{bits}": f"{word}{bits}"
            for letter, word in (("i", "int"), ("u", "uint"))
            for bits in (8, 16, 32, 64)
        },
    }.items()
}
"""Types of elements: what the core calls each, and the type of arrays that have them."""

_NAMES = {dtype: name for name, (_, dtype) in TYPES.items() if name != "bf16"}
OPS = ("sum", "product", "min", "max", "average")
_PIECES = 1 << 40


def type_of(arrays: Sequence[Array], dtype: str | None) -> str:
    """The name of the elements' type; empty where nothing says it."""
    if dtype is not None and dtype not in TYPES:
        raise unknown_name("dtype", dtype, TYPES)
    found = {array.dtype for array in arrays}
    if len(found) > 1:
        raise InputError(f"the buffers have several types: {', '.join(sorted(map(str, found)))}")
    if not found:
        return dtype or ""
    one = found.pop()
    if dtype is None:
        if one.name == "bfloat16":
            return "bf16"
        if one not in _NAMES:
            raise InputError(f"elements are {one}; expected one of {', '.join(TYPES)}")
        return _NAMES[one]
    if TYPES[dtype][1].itemsize != one.itemsize:
        raise InputError(f"elements are {one}, but dtype is {dtype}")
    return dtype


def flat(array: object, what: str, *, writes: bool) -> Array:
    """An array's elements in a row, in the same memory."""
    if isinstance(array, list | tuple | int | float):
        raise InputError(f"{what} is a {type(array).__name__}; give an array")
    found = np.asarray(array)
    if not found.flags.c_contiguous:
        raise InputError(f"{what} is not contiguous in memory")
    if writes and not found.flags.writeable:
        raise InputError(f"{what} is read-only")
    return found.reshape(-1)


@dataclass(frozen=True, eq=False)
class Given:
    """The arrays of one demand, flat: None for those that there are not."""

    send: Array | None
    receive: Array | None
    in_place: bool

    @property
    def arrays(self) -> list[Array]:
        return [array for array in (self.send, self.receive) if array is not None]


def gathered(demands: Sequence[Collective], npu: int, send: object, receive: object) -> list[Given]:
    """What is given for each demand; a single array is for the only demand this rank is in."""
    mine = [npu in demand.group for demand in demands]
    sends, receives = (
        _spread(one, mine, what) for one, what in ((send, "send"), (receive, "recv"))
    )
    found = []
    for one, other in zip(sends, receives, strict=True):
        in_place = other is None
        a = None if one is None else flat(one, "send", writes=in_place)
        b = None if other is None else flat(other, "recv", writes=True)
        if a is not None and b is not None and np.may_share_memory(a, b) and a.size and b.size:
            in_place = a.ctypes.data == b.ctypes.data and a.size == b.size
            a = a if in_place else a.copy()
        found.append(Given(a, b, in_place))
    return found


def _spread(given: object, mine: list[bool], what: str) -> list[object | None]:
    if isinstance(given, list | tuple) and len(mine) > 1:
        if len(given) != len(mine):
            raise InputError(f"{what} has {len(given)} arrays for {len(mine)} collectives")
        return list(given)
    if given is None:
        return [None] * len(mine)
    if sum(mine) != 1:
        raise InputError(
            f"{what} is one array, but this rank is in {sum(mine)} collectives; give a list with "
            "one for each, or None"
        )
    return [given if one else None for one in mine]


def found_count(collective: Collective, given: Given, lengths: Callable[[int], Fit]) -> int:
    """How many elements the collective's largest buffer has; -1 if the arrays do not say it.

    Parameters
    ----------
    lengths
        How long this rank's buffers are for a number of elements.
    """
    if not given.arrays:
        return -1
    wanted = _wanted(given)

    def compare(count: int) -> int:
        there = lengths(count)
        sizes = [there.both] if given.in_place else [there.input, there.output]
        pairs = [(a, b) for a, b in zip(sizes, wanted, strict=True) if b is not None]
        if any(a > b for a, b in pairs):
            return 1
        return 0 if all(a == b for a, b in pairs) else -1

    first = _least(lambda count: compare(count) >= 0)
    if compare(first) != 0:
        return -2
    last = _least(lambda count: compare(count) > 0) - 1
    if first == last:
        return first
    even = last - last % collective.ranks
    return even if even >= first else -1


def _wanted(given: Given) -> list[int | None]:
    if given.in_place:
        return [given.send.size if given.send is not None else None]
    return [None if one is None else one.size for one in (given.send, given.receive)]


def _least(holds: Callable[[int], bool]) -> int:
    """The least number for which this holds, which it does for all greater ones."""
    high = 1
    while high < _PIECES and not holds(high):
        high *= 2
    low = high // 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def is_at_home(algorithm: Algorithm) -> bool:
    """Whether every chunk is always where it lies in one buffer for input and output."""
    if algorithm.rows.compact:
        return True
    rows = algorithm.transfers
    named = [side for side in (rows.src_place, rows.dst_place) if side is not None]
    buffers = [side >> PLACE_BITS for side in named]
    return not any(np.isin(kind, (Buffer.INPUT, Buffer.OUTPUT)).any() for kind in buffers)


@dataclass(frozen=True)
class Fit:
    """How long a rank's buffers of one demand are, in elements.

    Attributes
    ----------
    input, output, both
        The input, the output, and one buffer for both.
    input_at, output_at
        Where they begin in that.
    apart
        Whether what is in it must be copied first: results go where something else was.
    """

    input: int
    output: int
    both: int
    input_at: int = 0
    output_at: int = 0
    apart: bool = False


def fit(sides: Sides, demand: int, *, shares: bool) -> Fit:
    """Of one demand; `shares`: what all ranks have are shares of one buffer, each at its place."""
    into, out = sides.inputs[demand], sides.outputs[demand]
    shift = sides.shift(demand) if shares else None
    if shift is None:
        return Fit(into, out, max(into, out), apart=True)
    first, begin = max(0, -shift), max(0, shift)
    return Fit(into, out, max(first + into, begin + out), first, begin)


def views(given: Given, lengths: Fit) -> tuple[Array, Array]:
    """Input and output as the program has them; copied first where it would be overwritten."""
    empty = np.zeros(0, dtype=np.uint8)
    if not given.in_place:
        send = empty if given.send is None else given.send[: lengths.input]
        receive = empty if given.receive is None else given.receive[: lengths.output]
        return send, receive
    if given.send is None:
        return empty, empty
    send = given.send[lengths.input_at : lengths.input_at + lengths.input]
    receive = given.send[lengths.output_at : lengths.output_at + lengths.output]
    return send.copy() if lengths.apart else send, receive


def check_lengths(collective: Collective, given: Given, lengths: Fit, count: int) -> None:
    """Raise unless the arrays have as many elements as the collective needs."""
    if given.in_place:
        pairs = [("the buffer", given.send, lengths.both)]
    else:
        pairs = [("send", given.send, lengths.input), ("recv", given.receive, lengths.output)]
    for name, array, wanted in pairs:
        size = 0 if array is None else array.size
        if size != wanted:
            raise InputError(
                f"{name} has {size} elements; {collective.kind} of {count} needs {wanted} here"
            )
