"""The grids on which groups sit, and what messages along their levels occupy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Routes
from weft.collective import Collective
from weft.cost import CostModel
from weft.planners.composition import Layout, Part, Step
from weft.planners.problem import Problem
from weft.ragged import offsets_of
from weft.topology.grid import Grid, grid_of
from weft.topology.levels import levels_of, looks_alike
from weft.topology.model import Topology

Npus = NDArray[np.int32]
Floats = NDArray[np.float64]
_MOST_PAIRS = 1 << 17  # of NPUs in one line, over all lines
_MOST_UNLIKE = 512  # NPUs that are not alike, among which levels are looked for all the same
_MOST_KINDS = 64  # of links, by what they carry


@dataclass(frozen=True, eq=False)
class Frame:
    """One layout per collective, all of the same sizes, and what moves along them take.

    There is a move for each level and each distance along it: every NPU of every group sends to
    the one so many places on.

    Attributes
    ----------
    rings
        For each level: whether only neighbours are one hop apart.
    first
        The number of the first move of each level.
    alpha, usual
        Seconds of latency of each move, over the longest way and in the mean.
    per_byte
        Seconds a byte of a message takes, over the slowest way.
    load
        How many messages of each move each kind of link carries, one row per move.
    """

    layouts: tuple[Layout, ...]
    rings: tuple[bool, ...]
    first: tuple[int, ...]
    alpha: Floats
    usual: Floats
    per_byte: Floats
    load: Floats

    @property
    def is_shared(self) -> bool:
        """Whether messages of a move pass some link one by one."""
        return bool((self.load > 1).any())

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.layouts[0].grid.sizes

    @cached_property
    def back(self) -> Npus:
        """The move that leads back, for each."""
        ends = [first + size - 1 for first, size in zip(self.first, self.sizes, strict=True)]
        pairs = zip(self.first, ends, strict=True)
        return np.concatenate([np.arange(end, first, -1) - 1 for first, end in pairs]).astype(
            np.int32
        )

    def moves_of(self, step: Step) -> list[int]:
        """The moves of a step: to all others along its level, or to both neighbours."""
        first, size = self.first[step.level], self.sizes[step.level]
        others = range(first, first + size - 1)
        return [others[0], others[-1]] if step.ring else list(others)


@dataclass(frozen=True, eq=False)
class Scene:
    """The ways to see groups as grids, and the links of the network by what they carry there.

    Attributes
    ----------
    rate
        Bytes a second of each kind of link.
    held
        Seconds that each message holds it besides its bytes.
    is_even
        Whether the NPUs of the groups all have links of the same kinds.
    """

    frames: tuple[Frame, ...]
    rate: Floats
    held: Floats
    is_even: bool

    @property
    def is_shared(self) -> bool:
        """Whether messages of a move pass some link one by one, in the first way to see them."""
        return self.frames[0].is_shared

    def lane(
        self, frame: Frame, part: Part, pieces: int, size: int, *, sums: bool, copies: bool
    ) -> _core.Lane:
        """A part whose chunks have `size` bytes, for the kernel."""
        levels = [step.level for step in part.steps]
        ring = np.zeros(len(frame.load), dtype=np.bool_)
        ring[[move for step in part.steps if step.ring for move in frame.moves_of(step)]] = True
        return _core.Lane(
            size=np.array([frame.sizes[level] for level in levels], dtype=np.int32),
            scatter=np.array([step.scatter for step in part.steps]),
            ring=np.array([step.ring for step in part.steps]),
            first=np.array([frame.first[level] for level in levels], dtype=np.int32),
            there=np.arange(len(frame.load), dtype=np.int32),
            back=frame.back,
            pieces=pieces,
            sums=sums,
            copies=copies,
            exchange=False,
            types=self._types(frame, size, ring),
        )

    def _types(self, frame: Frame, size: int, ring: NDArray[np.bool_]) -> _core.MoveTypes:
        move, resource = np.nonzero(frame.load)
        each = size / self.rate[resource] + self.held[resource]
        # Round a ring what is slow for one is fast for the next.
        alpha = np.where(ring, frame.usual, frame.alpha)
        hold, duration = frame.load[move, resource] * each, alpha + size * frame.per_byte
        return _core.MoveTypes(
            duration=_ps(duration),
            offsets=offsets_of(np.bincount(move, minlength=len(frame.load))),
            resource=resource.astype(np.int32),
            begin=np.zeros(len(resource), dtype=np.int64),
            same=_ps(hold),
            other=_ps(hold),
            turns=np.zeros(len(resource), dtype=np.int32),
        )


def _ps(seconds: Floats) -> NDArray[np.int64]:
    """Whole picoseconds, rounded up; at least one, so that what follows starts later."""
    return np.maximum(np.ceil(seconds * 1e12 - 1e-3), 1).astype(np.int64)


def scene(problem: Problem) -> Scene | None:
    """The ways to see a problem's groups as grids of levels, worked out once; None if none."""
    memo = problem.task.memo
    if "scene" not in memo:
        # To look at all lines of many NPUs takes minutes, and finds no levels where these differ.
        members = np.unique(np.concatenate([demand.group for demand in problem.demands]))
        seen = len(members) <= _MOST_UNLIKE or looks_alike(problem.topology, members.tolist())
        memo["scene"] = scene_of(problem.topology, problem.demands, problem.cost) if seen else None
    found: Scene | None = memo["scene"]
    return found


def scene_of(topology: Topology, demands: Sequence[Collective], cost: CostModel) -> Scene | None:
    """The ways to see the groups as grids of levels; None if there is none."""
    drafts: dict[tuple[tuple[int, ...], bytes], _Draft] = {}
    for grids in zip(*(_grids(topology, demand) for demand in demands), strict=False):
        if len({grid.sizes for grid in grids}) > 1:
            continue
        key = grids[0].sizes, grids[0].npus.tobytes()
        if key not in drafts and (draft := _Draft.of(topology, demands, grids)) is not None:
            drafts[key] = draft
    if not drafts:
        return None
    loads = np.concatenate([draft.load for draft in drafts.values()])
    # In one line of all NPUs some messages stay in a box and some do not: links differ by chance.
    structured = [draft.load for draft in drafts.values() if len(draft.first) > 1]
    kind = _kinds(topology, np.concatenate(structured) if structured else loads)
    ends = offsets_of([len(draft.load) for draft in drafts.values()])
    _, some = np.unique(kind, return_index=True)
    # Messages take turns on links between switches; of others the busiest counts.
    inner = (topology.src >= topology.npus) & (topology.dst >= topology.npus)
    carried = np.array(
        [
            loads[:, kind == one].mean(axis=1) if inner[link] else loads[:, kind == one].max(axis=1)
            for one, link in enumerate(some)
        ]
    ).T
    used: NDArray[np.bool_] = np.asarray(carried.any(axis=0))
    rate = topology.bandwidth[some][used].astype(np.float64)
    blocking = 1e-12 if cost.latency_model == "blocking" else 0.0
    held = topology.latency[some][used].astype(np.float64) * blocking
    frames = tuple(
        draft.frame(topology, cost, carried[begin:end, used])
        for draft, begin, end in zip(drafts.values(), ends[:-1], ends[1:], strict=True)
    )
    return Scene(frames, rate, held, _are_even(topology, demands, np.where(used[kind], kind, -1)))


def _are_even(topology: Topology, demands: Sequence[Collective], kind: NDArray[np.int64]) -> bool:
    """Whether all members of groups have as many links of each kind that is used."""
    members = np.unique(np.concatenate([demand.group for demand in demands]))
    for ends in (topology.src, topology.dst):
        count = np.zeros((topology.nodes, int(kind.max(initial=0)) + 1), dtype=np.int64)
        np.add.at(count, (ends[kind >= 0], kind[kind >= 0]), 1)
        if (count[members] != count[members[0]]).any():
            return False
    return True


def _kinds(topology: Topology, loads: Floats) -> NDArray[np.int64]:
    """Links that carry the same at the same speed, by number.

    Where that is too many kinds, links between switches count as alike: messages take turns there.
    """
    speed = np.stack([topology.bandwidth, topology.latency]).astype(float)
    kind = np.unique(np.concatenate([speed, loads]), axis=1, return_inverse=True)[1]
    if int(kind.max(initial=0)) < _MOST_KINDS:
        return kind.reshape(-1)
    inner = (topology.src >= topology.npus) & (topology.dst >= topology.npus)
    idle = ~loads.any(axis=0)
    alike = np.where(inner, -1.0, loads) + np.where(inner & idle, -1.0, 0.0)
    return np.unique(np.concatenate([speed, alike]), axis=1, return_inverse=True)[1].reshape(-1)


def _grids(topology: Topology, demand: Collective) -> Iterator[Grid]:
    """What distances say, what the network declares, and all NPUs in one line."""
    declared = grid_of(topology, demand.group)
    found = levels_of(topology, demand.group) or declared
    yield found
    yield declared
    yield _with_squares(topology, declared)
    yield _with_rings(declared)
    yield Grid((len(demand.group),), found.npus)


def _with_squares(topology: Topology, grid: Grid) -> Grid:
    """The same with rings of four as squares: two levels of two."""
    sizes = list[int]()
    npus = grid.npus.reshape(grid.sizes[::-1])
    for size in reversed(grid.sizes):
        axis = len(sizes)
        line = np.moveaxis(npus, axis, 0).reshape(size, -1)[:, 0]
        if size != 4 or not _is_ring(topology, line):
            sizes.append(size)
            continue
        # Round a square: places 0, 1, 3, 2 of two by two.
        npus = np.take(npus, [0, 1, 3, 2], axis=axis)
        npus = npus.reshape(*npus.shape[:axis], 2, 2, *npus.shape[axis + 1 :])
        sizes += [2, 2]
    return Grid(tuple(reversed(sizes)), np.ascontiguousarray(npus.reshape(-1)))


def _with_rings(grid: Grid) -> Grid:
    """The same with squares, two levels of two, as rings of four."""
    sizes = list[int]()
    npus = grid.npus.reshape(grid.sizes[::-1])
    left = list(reversed(grid.sizes))
    while left:
        axis = len(sizes)
        if left[:2] == [2, 2]:
            npus = npus.reshape(*npus.shape[:axis], 4, *npus.shape[axis + 2 :])
            npus = np.take(npus, [0, 1, 3, 2], axis=axis)
            left = [4, *left[2:]]
        sizes.append(left.pop(0))
    return Grid(tuple(reversed(sizes)), np.ascontiguousarray(npus.reshape(-1)))


def _is_ring(topology: Topology, line: Npus) -> bool:
    """Whether neighbours of a line of four are linked, and NPUs across are not."""
    links = set(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    around = [(int(line[i]), int(line[(i + 1) % 4])) for i in range(4)]
    across = (int(line[0]), int(line[2]))
    return all(p in links and p[::-1] in links for p in around) and across not in links


@dataclass(frozen=True, eq=False)
class _Draft:
    """A frame whose links are still told apart."""

    layouts: tuple[Layout, ...]
    rings: tuple[bool, ...]
    first: tuple[int, ...]
    ways: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]]  # move, row, link
    moves: int
    links: int

    @classmethod
    def of(
        cls, topology: Topology, demands: Sequence[Collective], grids: Sequence[Grid]
    ) -> _Draft | None:
        """None if some line is neither direct nor a ring."""
        sizes, rings, ways = grids[0].sizes, list[bool](), []
        first = offsets_of([size - 1 for size in sizes]).tolist()
        for level, size in enumerate(sizes):
            if sum(len(grid.npus) for grid in grids) * size > _MOST_PAIRS:
                return None
            found = _ways(topology, demands, grids, level, np.arange(1, size))
            rings.append(found is None)
            if found is None and size > 3:
                found = _ways(topology, demands, grids, level, np.array([1, size - 1]))
            if found is None:
                return None
            ways += [(first[level] + distance - 1, row, link) for distance, row, link in found]
        layouts = tuple(Layout(grid) for grid in grids)
        return cls(layouts, tuple(rings), tuple(first[:-1]), ways, first[-1], topology.links)

    @cached_property
    def load(self) -> Floats:
        """How many messages of each move each link carries."""
        load = np.zeros((self.moves, self.links))
        for move, _, link in self.ways:
            np.add.at(load, (move, link), 1)
        return load

    def frame(self, topology: Topology, cost: CostModel, load: Floats) -> Frame:
        alpha, usual, count, per_byte = (np.zeros(self.moves) for _ in range(4))
        whole = np.sum if cost.switching == "store-and-forward" else np.max
        slow = 1 / topology.bandwidth
        for move, row, link in self.ways:
            ends = np.flatnonzero(np.diff(row, prepend=-1))
            latency = np.add.reduceat(topology.latency[link], ends) * 1e-12
            pushes = np.add if whole is np.sum else np.maximum
            np.maximum.at(alpha, move[ends], latency)
            np.add.at(usual, move[ends], latency)
            np.add.at(count, move[ends], 1)
            np.maximum.at(per_byte, move[ends], pushes.reduceat(slow[link], ends))
        usual /= np.maximum(count, 1)
        return Frame(self.layouts, self.rings, self.first, alpha, usual, per_byte, load)


def _ways(
    topology: Topology,
    demands: Sequence[Collective],
    grids: Sequence[Grid],
    level: int,
    distances: NDArray[np.int64],
) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]] | None:
    """How messages go to the NPUs so many places on; None if some are not one hop away.

    For each collective: the distance, the message and the link, one entry per link crossed.
    """
    found = []
    for demand, grid in zip(demands, grids, strict=True):
        place, size = np.arange(len(grid.npus))[None, :], grid.sizes[level]
        here = grid.along(level, place)
        other = place + ((here + distances[:, None]) % size - here) * grid.stride(level)
        src, dst = np.tile(grid.npus, len(distances)), grid.npus[other].reshape(-1)
        reach = np.full(len(src), demand.chunks.reach[0], dtype=np.int32)
        core = demand.chunks.core
        paths = _core.forward(topology.core, CostModel().core, core, src, dst, reach)
        if paths.lost >= 0 or len(paths.src) > len(src):
            return None
        row, link = Routes(paths.route_offsets, paths.route_links).crossed(paths.route)
        found.append((np.repeat(distances, len(grid.npus))[row], row, link))
    return found
