"""What the core does to elements, beside NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from weft import _core
from weft.runtime.buffers import TYPES
from weft.runtime.reference import narrowed

OPERATIONS = {
    "sum": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
WORDS = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)


def combine(name: str, op: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.empty_like(a)
    kind, operation = TYPES[name][0], getattr(_core.ElementOp, op)
    _core.combine(kind, operation, out.view(np.uint8), a.view(np.uint8), b.view(np.uint8))
    return out


def wide(words: np.ndarray) -> np.ndarray:
    """bf16 words as floats."""
    return (words.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize(("name", "op"), [*itertools.product(TYPES, OPERATIONS)])
def test_as_numpy_does(name: str, op: str) -> None:
    rng = np.random.default_rng(7)
    dtype = TYPES[name][1]
    a, b = (rng.integers(0, 256, 4096, dtype=np.uint8).view(dtype) for _ in range(2))
    found = combine(name, op, a, b)
    with np.errstate(all="ignore"):
        if name == "bf16":
            right = narrowed(OPERATIONS[op](wide(a), wide(b)), "bf16")
            nan = np.isnan(wide(right))
            assert (np.isnan(wide(found)) == nan).all()
        else:
            right = OPERATIONS[op](a, b)
            nan = np.isnan(right) if dtype.kind == "f" else np.zeros(len(right), dtype=bool)
            assert (np.isnan(found) == nan if nan.any() else True) is not False
        assert np.array_equal(found[~nan], right[~nan])


def test_every_half_and_its_neighbours() -> None:
    """All 65536 words, added to a few others: rounded as NumPy rounds."""
    a = WORDS.view(np.float16)
    for other in (0.0, 1.0, -1.0, 6e-8, 0.00012, 1000.5, 65504.0, -65504.0, np.inf):
        b = np.full_like(a, other)
        with np.errstate(all="ignore"):
            right = a + b
        found = combine("f16", "sum", a, b)
        nan = np.isnan(right)
        assert np.array_equal(np.isnan(found), nan)
        assert np.array_equal(found[~nan].view(np.uint16), right[~nan].view(np.uint16))


@examples(100)
@given(st.sampled_from(sorted(TYPES)), st.integers(1, 100), st.data())
def test_division(name: str, by: int, data: st.DataObject) -> None:
    kind, dtype = TYPES[name]
    if dtype.kind in "iu" and name != "bf16":
        info = np.iinfo(dtype)
        values = data.draw(st.lists(st.integers(int(info.min), int(info.max)), min_size=1))
        right = [abs(value) // by * (1 if value >= 0 else -1) for value in values]
        array = np.array(values, dtype=dtype)
    else:
        values = data.draw(st.lists(st.integers(-250, 250), min_size=1))
        array = narrowed(np.array(values, dtype=np.float64), name)
        exact = wide(array) if name == "bf16" else array
        single = exact if name == "f64" else exact.astype(np.float32)
        right = narrowed(single / single.dtype.type(by), name).tolist()
    _core.divide(kind, array.view(np.uint8), by)
    assert array.tolist() == right
