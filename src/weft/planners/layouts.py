"""The grids on which groups sit, and what messages along each of their levels cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Routes
from weft.collective import Collective
from weft.cost import CostModel
from weft.planners.composition import Layout
from weft.topology.grid import Grid, grid_of
from weft.topology.levels import levels_of
from weft.topology.model import Topology

Npus = NDArray[np.int32]
_MOST_PAIRS = 1 << 20  # of NPUs in one line, over all lines


@dataclass(frozen=True, eq=False)
class Level:
    """What messages along one level cost, in all lines of all groups at once.

    Attributes
    ----------
    alpha
        Seconds until a message without bytes is there, the longest way.
    load
        Seconds that each link is held for a byte: one between each two of a line that is direct,
        half a round from each NPU of a ring.
    """

    alpha: float
    load: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Frame:
    """One layout per collective, all of the same sizes, and their levels."""

    layouts: tuple[Layout, ...]
    levels: tuple[Level, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.layouts[0].grid.sizes


def frames_of(topology: Topology, demands: Sequence[Collective]) -> list[Frame]:
    """The ways to see the groups as grids of levels; none if they are not alike."""
    kinds: list[list[Grid]] = [list(_grids(topology, demand)) for demand in demands]
    found: dict[tuple[tuple[int, ...], bytes], Frame] = {}
    for grids in zip(*kinds, strict=False):
        if len({grid.sizes for grid in grids}) > 1:
            continue
        key = grids[0].sizes, grids[0].npus.tobytes()
        if key not in found and (frame := _frame(topology, demands, grids)) is not None:
            found[key] = frame
    return list(found.values())


def _grids(topology: Topology, demand: Collective) -> Iterator[Grid]:
    """What distances say, what the network declares, and all NPUs in one line."""
    declared = grid_of(topology, demand.group)
    found = levels_of(topology, demand.group) or declared
    yield found
    yield declared
    yield _with_squares(topology, declared)
    yield Grid((len(demand.group),), found.npus)


def _with_squares(topology: Topology, grid: Grid) -> Grid:
    """The same with rings of four as squares: two levels of two."""
    sizes, npus = list[int](), grid.npus.reshape(grid.sizes[::-1])
    for axis, size in enumerate(reversed(grid.sizes)):
        line = np.moveaxis(npus, len(sizes), 0)[:, *[0] * (npus.ndim - 1)] if size == 4 else None
        if line is None or not _is_ring(topology, line):
            sizes.append(size)
            continue
        # Round a square: places 0, 1, 3, 2 of two by two.
        npus = np.take(npus, [0, 1, 3, 2], axis=len(sizes))
        shape = npus.shape
        npus = npus.reshape(*shape[: len(sizes)], 2, 2, *shape[len(sizes) + 1 :])
        sizes += [2, 2]
    return Grid(tuple(reversed(sizes)), np.ascontiguousarray(npus.reshape(-1)))


def _is_ring(topology: Topology, line: Npus) -> bool:
    """Whether neighbours of a line of four are linked, and NPUs across are not."""
    links = set(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    around = [(int(line[i]), int(line[(i + 1) % 4])) for i in range(4)]
    return (
        all(pair in links and pair[::-1] in links for pair in around)
        and (int(line[0]), int(line[2])) not in links
    )


def _frame(
    topology: Topology, demands: Sequence[Collective], grids: Sequence[Grid]
) -> Frame | None:
    """None if some line is neither direct nor a ring."""
    levels, direct = list[Level](), list[bool]()
    for number, size in enumerate(grids[0].sizes):
        if sum(len(grid.npus) for grid in grids) * size > _MOST_PAIRS:
            return None
        level = _level(topology, demands, grids, number, range(1, size))
        if size > 3 and level is None:
            ring = _level(topology, demands, grids, number, (1, size - 1))
            if ring is None:
                return None
            # Half of what each NPU has goes round either way, by up to half of the ring.
            level = Level(ring.alpha * (size // 2), ring.load * (size / 2))
            direct.append(False)
        elif level is None:
            return None
        else:
            direct.append(True)
        levels.append(level)
    return Frame(tuple(Layout(grid, tuple(direct)) for grid in grids), tuple(levels))


def _level(
    topology: Topology,
    demands: Sequence[Collective],
    grids: Sequence[Grid],
    number: int,
    steps: Sequence[int],
) -> Level | None:
    """What messages to the NPUs so many places on cost; None if some are not one hop away."""
    alpha, load = 0.0, np.zeros(topology.links)
    for demand, grid in zip(demands, grids, strict=True):
        src, dst = _pairs(grid, number, np.array(steps))
        reach = np.full(len(src), demand.chunks.reach[0], dtype=np.int32)
        core = demand.chunks.core
        found = _core.forward(topology.core, CostModel().core, core, src, dst, reach)
        if found.lost >= 0 or len(found.src) > len(src):
            return None
        row, links = Routes(found.route_offsets, found.route_links).crossed(found.route)
        alpha = max(alpha, float(np.bincount(row, topology.latency[links]).max()) * 1e-12)
        load += np.bincount(links, minlength=topology.links) / topology.bandwidth
    return Level(alpha, load)


def _pairs(grid: Grid, level: int, steps: NDArray[np.int64]) -> tuple[Npus, Npus]:
    """From every NPU to those so many places further round its line."""
    place, size = np.arange(len(grid.npus))[:, None], grid.sizes[level]
    here = grid.along(level, place)
    other = place + ((here + steps) % size - here) * grid.stride(level)
    return np.repeat(grid.npus, len(steps)), grid.npus[other].reshape(-1)
