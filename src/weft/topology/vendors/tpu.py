"""TPU slices: tori, with links that go round only where there are such, and twisted tori."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from weft.errors import InputError
from weft.topology.dimensions import Dimension, levelled, product
from weft.topology.model import Topology
from weft.topology.rates import ICI_7X, ICI_V4, ICI_V5E, ICI_V5P, ICI_V6E, Rate
from weft.topology.twisted import can_twist, twisted_ends
from weft.topology.vendors.preset import Link, Preset, SpeedOf

_CUBE = 4
_SIDE = 16


def _ici(rate: Rate) -> Link:
    return Link("the inter-chip interconnect", rate, 1.0)


def _sizes(text: str, count: str) -> list[int]:
    parts = text.lower().split("x")
    if len(parts) != {"two": 2, "three": 3}[count] or not all(
        re.fullmatch(r"0*[1-9][0-9]{0,8}", part.strip()) for part in parts
    ):
        raise InputError(f"it needs {count} sizes from 1")
    return [int(part) for part in parts]


@dataclass(frozen=True)
class _Cubes:
    """Slices of a machine made of cubes of 4x4x4 chips, whose faces optical switches join."""

    link: Link
    pod: int

    def __call__(self, text: str, speed: SpeedOf) -> Topology:
        shape, twist, rest = text.lower().partition("_twisted")
        sizes = _sizes(shape, "three")
        whole = all(size % _CUBE == 0 for size in sizes)
        if rest or (twist and not (whole and can_twist(sizes))):
            raise InputError(
                "only slices of n x n x 2n and n x 2n x 2n, n a multiple of 4, can be twisted"
            )
        if not whole and max(sizes) > _CUBE:
            raise InputError(
                "a slice is whole cubes of 4x4x4 chips, or lies in one: its sizes are multiples "
                "of 4, or all at most 4"
            )
        if math.prod(sizes) > self.pod:
            raise InputError(f"a pod has {self.pod} chips, not {math.prod(sizes)}")
        rate, latency = speed(self.link), self.link.latency
        if twist:
            ends = twisted_ends(sizes)
            return levelled("it", sizes, 0, ends, [rate] * 3, [latency] * 3)
        return _torus(sizes, [whole] * 3, rate, latency)


@dataclass(frozen=True)
class _Square:
    """Slices of a torus of 16x16 chips: a dimension goes round only if the slice has all of it."""

    link: Link

    def __call__(self, text: str, speed: SpeedOf) -> Topology:
        sizes = _sizes(text, "two")
        if max(sizes) > _SIDE:
            raise InputError("a pod has 16x16 chips")
        around = [size == _SIDE for size in sizes]
        return _torus(sizes, around, speed(self.link), self.link.latency)


def _torus(sizes: Sequence[int], around: Sequence[bool], rate: int, latency: int) -> Topology:
    """A grid of chips, in some dimensions of rings, in others of lines."""
    dimensions = [
        Dimension("ring" if goes_round else "line", size, 0)
        for size, goes_round in zip(sizes, around, strict=True)
    ]
    return product("it", dimensions, [rate], [latency])


TPUS = tuple(
    Preset(name=name, example=example, summary=summary, build=build)
    for name, example, summary, build in (
        ("tpuv4", "tpuv4:4x4x4", "a slice of TPU v4", _Cubes(_ici(ICI_V4), 4096)),
        ("tpuv5p", "tpuv5p:4x4x8", "a slice of TPU v5p", _Cubes(_ici(ICI_V5P), 8960)),
        ("tpuv5e", "tpuv5e:8x16", "a slice of TPU v5e", _Square(_ici(ICI_V5E))),
        ("tpuv6e", "tpuv6e:16x16", "a slice of TPU v6e (Trillium)", _Square(_ici(ICI_V6E))),
        ("tpu7x", "tpu7x:4x4x8", "a slice of TPU7x (Ironwood)", _Cubes(_ici(ICI_7X), 9216)),
    )
)
