"""Machines that are boxes of NPUs, joined by switches."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft.errors import InputError
from weft.quoting import quoted
from weft.topology.dimensions import Dimension, check_size, dimension_ends
from weft.topology.model import Topology
from weft.topology.vendors.preset import Link, SpeedOf


class Boxes:
    """Boxes of NPUs under construction: collects links, then makes the network."""

    def __init__(self, boxes: int, box: Sequence[int], switches: int = 0) -> None:
        """So many boxes, each a grid of these sizes, and so many switches at all."""
        self.box_npus = math.prod(box)
        # No machine here has more than 32 links per NPU: enough to refuse what is absurd.
        check_size("it", boxes * self.box_npus, 32 * boxes * self.box_npus)
        self.boxes, self.switches = boxes, switches
        self.able = 0  # the first so many switches copy and add
        self.npus = boxes * self.box_npus
        self.dimensions = (*box, boxes) if boxes > 1 else tuple(box)
        self.first = np.arange(boxes)[:, None] * self.box_npus
        self._links: list[tuple[NDArray[np.int64], Link]] = []  # sources, destinations, multiples

    def one_way(self, src: ArrayLike, dst: ArrayLike, link: Link, times: ArrayLike = 1) -> None:
        """Links between nodes of the same place in two arrays, each so many times as fast."""
        row = np.broadcast_arrays(src, dst, times)
        self._links.append(
            (np.stack([column.reshape(-1) for column in row]).astype(np.int64), link)
        )

    def both_ways(self, a: ArrayLike, b: ArrayLike, link: Link, times: ArrayLike = 1) -> None:
        """All links from `a` to `b`, then all links back."""
        self.one_way(a, b, link, times)
        self.one_way(b, a, link, times)

    def cables(self, table: str, link: Link) -> None:
        """The cables inside each box, as ``a-b:how many``."""
        rows = [[int(n) for n in re.findall(r"\d+", cable)] for cable in table.split()]
        a, b, times = np.array(rows).T
        self.both_ways(self.first + a, self.first + b, link, times)

    def wired(self, wiring: str, dimension: int, link: Link) -> None:
        """Every line of a dimension of the grid: a ``ring``, or ``fc`` for each with each."""
        stride = math.prod(self.dimensions[:dimension])
        one = Dimension(wiring, self.dimensions[dimension], 0)
        self.one_way(*dimension_ends(one, self.npus, stride, self.npus), link)

    def inside(self, link: Link) -> None:
        """Every NPU to its own box's switch, the first switches of the network."""
        switch = self.npus + np.arange(self.boxes)[:, None]
        self.both_ways(self.first + np.arange(self.box_npus), switch, link)

    def rails(self, rails: int, link: Link) -> None:
        """A leaf for each place in a box or a tray, the last but one of the switches; a spine.

        Every leaf has as many links to the spine as down.
        """
        npu = np.arange(self.npus)
        leaves = self.npus + self.switches - 1 - rails + np.arange(rails)
        self.both_ways(npu, leaves[npu % rails], link)
        self.both_ways(np.repeat(leaves, self.npus // rails), leaves[-1] + 1, link)

    def network(self, speed: SpeedOf, *, translates: bool = False) -> Topology:
        """The network; `translates` as in `Topology`."""
        columns = [
            np.stack([*ends[:2], ends[2] * speed(link), np.full_like(ends[0], link.latency)])
            for ends, link in self._links
        ]
        network = Topology.from_links(
            "machine",
            self.npus,
            *np.concatenate(columns, axis=1),
            switches=self.switches,
            dimensions=self.dimensions,
            translates=translates,
        )
        able = range(self.npus, self.npus + self.able)
        return network.with_switches(copying=able, adding=able) if able else network


def number_of_boxes(text: str, most: int | None = None) -> int:
    """How many boxes parameters ask for; 1 without any."""
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}|", text):
        raise InputError(f"{quoted(text)} is not a number of boxes")
    boxes = int(text or 1)
    if most is not None and boxes > most:
        raise InputError(f"it has at most {most} boxes, not {boxes}")
    return boxes


def never(_boxes: int) -> bool:
    """No number of boxes translates."""
    return False


def always(_boxes: int) -> bool:
    """Any number of boxes translates."""
    return True


def of_boxes(
    build: Callable[[int], Boxes], translates: Callable[[int], bool] = always
) -> Callable[[str, SpeedOf], Topology]:
    """A machine of as many boxes as its parameters ask for; 1 without any.

    `translates`: whether so many of them do, as `Topology.translates` says.
    """

    def built(text: str, speed: SpeedOf) -> Topology:
        boxes = number_of_boxes(text)
        return build(boxes).network(speed, translates=translates(boxes))

    return built
