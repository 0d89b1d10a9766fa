"""Values: what a user holds cannot be changed, and is pickled and copied without its caches."""

from __future__ import annotations

from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

A = TypeVar("A", bound=NDArray[Any])


class Value:
    """Base of frozen dataclasses: arrays and dicts are read-only, cached properties stay behind.

    A cached property may hold an object of the core, which cannot be pickled, and is computed
    again where it is needed. Arrays and dicts are given out as read-only views: nothing is
    copied, and pickling, which forgets that they were read-only, does not make them writable.
    """

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and value.flags.writeable:
                vars(self)[name] = read_only(value)
            elif isinstance(value, dict):
                vars(self)[name] = MappingProxyType(value)

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: dict(value) if isinstance(value, MappingProxyType) else value
            for name, value in vars(self).items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        Value.__post_init__(self)


def read_only(array: A) -> A:
    """The same array, not to be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
