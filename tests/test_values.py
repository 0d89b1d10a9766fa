"""Values are read-only, and are pickled and copied without their caches."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from weft.values import Value, read_only


@dataclass(frozen=True, eq=False)
class Point(Value):
    places: NDArray[np.int64]
    name: str = "here"
    notes: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def lock(self) -> object:
        return (n for n in self.places)  # what cannot be pickled


def test_arrays_are_read_only_but_not_copied() -> None:
    places = np.arange(3)
    point = Point(places)
    with pytest.raises(ValueError, match="read-only"):
        point.places[0] = 7
    with pytest.raises(TypeError, match="item assignment"):
        point.notes["new"] = 1  # type: ignore[index]
    assert np.shares_memory(point.places, places)
    places[0] = 5  # the caller's own array stays writable


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]
)
def test_copies_have_no_caches_and_stay_read_only(again: Callable[[Any], Any]) -> None:
    point = Point(np.arange(3), notes={"a": 1})
    assert point.lock is point.lock
    other = again(point)
    assert other.places.tolist() == [0, 1, 2]
    assert other.name == "here"
    assert other.notes == {"a": 1}
    assert type(other.notes) is type(point.notes)
    assert "lock" not in vars(other)
    assert not other.places.flags.writeable


def test_read_only_leaves_the_array_itself_alone() -> None:
    array = np.zeros(2)
    assert not read_only(array).flags.writeable
    assert array.flags.writeable
