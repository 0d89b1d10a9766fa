"""In how many chunks to cut: few pay for whole chunks at the end, many pay α for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weft import _core
from weft.algorithm import Algorithm
from weft.collective import Collective, all_reduce_of
from weft.cost import CostModel
from weft.planners.problem import ROUNDED, Problem, Task
from weft.topology.model import Topology
from weft.units import NEVER

# Collectives that run at once: chunks per share, tried in this order while more gain.
_COUNTS_AT_ONCE = (4, 12, 32)
_CANDIDATES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
# An NPU's share of a buffer that all have is small already, the smaller the more NPUs there are.
_MOST_OF_A_SHARE, _MOST_OF_A_BUFFER = 32, 2048
_MOST_WORK = 1 << 21  # transfers in all
_HOPS_OF_A_PATH = 4
_NPUS_A_WEIGHT = 16  # so many more make a transfer behind switches dearer by one
# A Broadcast has many more chunks: rows at most, behind switches it takes longer to place them;
# chunks that are served at a switch before one that waits; and a forecast as good as the best.
_MOST_ROWS, _MOST_ROWS_BEHIND_SWITCHES = 1 << 20, 1 << 17
_MOST_LONG_ROWS = 1 << 19  # of a plan of steady trees
_CHUNKS_AT_A_SWITCH = 4
_ENOUGH = 1.002
_FEW_CHUNKS = 1 << 12  # of which a table is made even if all are alike
WORTH = 1.005  # more chunks must gain at least this much
_BETTER = 1.002  # what gains this much is kept, though it does not encourage to go on
_HOPELESS = 1.5  # the most promising number of chunks takes so much longer than what is known
# Counts in a row that may fail to; more, as long as little work is done.
_PATIENCE, _MORE_PATIENCE, _LITTLE_WORK = 2, 4, 1 << 15


@dataclass(frozen=True, eq=False)
class Option:
    """The problem with one number of chunks: about the least it can take, and the work."""

    problem: Problem
    forecast: float
    work: int


def options(problem: Problem) -> list[Option]:
    """The problem with every number of chunks that is sensible; as it is if none is to be chosen.

    A forecast is a lower bound and a little more: it says which numbers are promising, and which
    can hardly beat what was found. There is none where there is nothing to choose.
    """
    if not any(problem.free):
        return [Option(problem, 0, 0)]
    memo = problem.task.memo
    if "options" not in memo:
        memo["options"] = list(_options(problem))
    return [
        replace(option, problem=replace(problem, task=option.problem.task, free=()))
        for option in memo["options"]
    ]


def long_options(problem: Problem) -> list[Option]:
    """The same for planners that need many chunks and place them quickly: only rows limit them."""
    found = options(problem)
    if len(found) < 2 or len(problem.demands) > 1:
        return found
    last = found[-1].problem.demand
    each = problem.demand.part_count * problem.topology.npus
    by_bytes = problem.demand.size // (problem.demand.part_count * problem.demand.alignment)
    for count in _CANDIDATES:
        if last.chunks_per_share < count <= min(_MOST_LONG_ROWS // each, by_bytes):
            cut = problem.cut([replace(problem.demand, chunks_per_share=count)])
            found.append(Option(cut, _forecast(cut), each * count))
    return found


def rooted_cuts(problem: Problem) -> tuple[list[Problem], int]:
    """A Broadcast or a Reduce in more and more chunks, and which of them is promising.

    Chunks follow each other down trees, so that only rows limit their number: the time is about a
    lower bound for whole chunks, and one more chunk, or those it waits for, on each link of a long
    way. The least number is promising of which more would bring next to nothing. None if it is
    something else, or if there is nothing to choose.
    """
    if not any(problem.free) or problem.kinds not in ({"broadcast"}, {"reduce"}):
        return [], 0
    topology, demand = problem.topology, problem.demand
    if len(problem.demands) > 1 or not topology.links:
        return [], 0
    rows = _MOST_ROWS_BEHIND_SWITCHES if topology.switches else _MOST_ROWS
    most = min(demand.size // demand.alignment, rows // max(1, demand.ranks - 1))
    counts = [1 << i for i in range(max(1, most).bit_length())]
    if problem.cost.switching == "store-and-forward" and topology.buffers:
        counts = _fitting(topology, counts, demand, min(topology.buffers.values()))
    cuts = [problem.cut([replace(demand, chunks_per_share=count)]) for count in counts]
    away = _core.distances(topology.core, demand.group[0], False)[list(demand.group)]
    waits = _CHUNKS_AT_A_SWITCH if topology.switches else 1
    lost = waits * float(away.max()) * 1e12 / float(np.median(topology.bandwidth))
    forecasts = [cut.task.goal + lost * cut.chunks.largest for cut in cuts]
    enough = min(forecasts) * _ENOUGH
    return cuts, next(i for i, forecast in enumerate(forecasts) if forecast <= enough)


def leaves_a_gap(problem: Problem, time: int) -> bool:
    """Whether a plan in some number of chunks that is sensible may take much less than this."""
    task = problem.task
    quick = task.ideal if any(problem.free) else task.floor or task.almost
    if time <= quick * task.near + ROUNDED:
        return False
    tasks = (option.problem.task for option in reversed(options(problem)))
    return any(time > _least(cut) * task.near + ROUNDED for cut in tasks)


def _least(task: Task) -> int:
    """A time that no plan in these chunks can beat; without a table of many that are alike."""
    many = sum(demand.chunk_count for demand in task.demands) > _FEW_CHUNKS
    return task.floor if many and task.is_symmetric else task.bound


def _options(problem: Problem) -> Iterator[Option]:
    if len(problem.demands) > 1:
        for demands in dict.fromkeys(tuple(_cut_up_to(problem, n)) for n in _COUNTS_AT_ONCE):
            yield Option(problem.cut(demands), 0, 0)
        return
    counts = _counts(problem.topology, problem.demand, problem.cost)
    for count in counts:
        cut = problem.cut([replace(problem.demand, chunks_per_share=count)])
        several = len(counts) > 1  # else there may be too many chunks to forecast anything
        forecast, work = (_forecast(cut), _work(cut.topology, cut.demand)) if several else (0, 0)
        yield Option(cut, forecast, work)


def _cut_up_to(problem: Problem, most: int) -> Iterator[Collective]:
    """Cut in as many chunks as are sensible, up to `most`, where their number is free."""
    for demand, free in zip(problem.demands, problem.free, strict=True):
        counts = _counts(problem.topology, demand, problem.cost) if free else []
        few = [k for k in counts if k <= most] or counts[:1]
        yield replace(demand, chunks_per_share=max(few)) if free else demand


def climb(
    tried: Sequence[Option],
    plan: Callable[[Problem], Algorithm | None],
    known: Algorithm | None = None,
) -> Algorithm | None:
    """The best plan over several options, with few of them tried; None if there is none.

    The search starts at the smallest promising option and climbs from there, up and then down.

    Parameters
    ----------
    plan
        Plans an option; None where that is not worth it.
    known
        The best that others found: beyond the first option, what can hardly beat it is not tried.
    """
    promising = min(option.forecast for option in tried) * WORTH
    first = next(i for i, option in enumerate(tried) if option.forecast <= promising)
    search = _Climb(tried, plan, NEVER if known is None else known.time)
    search.try_one(tried[first])
    if known is not None and search.best is not None and search.best.time > known.time * _HOPELESS:
        return search.best
    search.along(range(first + 1, len(tried)))
    search.along(range(first - 1, -1, -1))
    return search.best


def ladders(problem: Problem) -> list[list[Problem]]:
    """The problem in more and more chunks, where their number is to be chosen.

    An All-Reduce need not be cut in shares: not every algorithm gives each NPU one. So there are
    two lists, one for fewer chunks than NPUs, in which not all have the same to do.
    """
    if not any(problem.free):
        return [[problem]]
    memo = problem.task.memo
    if "ladders" not in memo:
        memo["ladders"] = [[step.task for step in ladder] for ladder in _ladders(problem)]
    return [[replace(problem, task=task, free=()) for task in ladder] for ladder in memo["ladders"]]


def is_cut_of(problem: Problem, demands: Sequence[Collective]) -> bool:
    """Whether these are the problem's collectives, in other chunks at most where they are free."""
    if len(demands) != len(problem.demands):
        return False
    free = problem.free or [False] * len(demands)
    same = all(
        one == asked
        or (any_number and replace(one, chunks_per_share=asked.chunks_per_share) == asked)
        for one, asked, any_number in zip(demands, problem.demands, free, strict=True)
    )
    return same or any(s.demands == tuple(demands) for ladder in ladders(problem) for s in ladder)


def _ladders(problem: Problem) -> list[list[Problem]]:
    steps = [
        _ladder(problem.topology, demand, problem.cost) if free else {1: demand}
        for demand, free in zip(problem.demands, problem.free, strict=True)
    ]
    levels = sorted({pieces for ladder in steps for pieces in ladder})
    whole = max(demand.pattern.shares(demand.ranks) for demand in problem.demands)
    few, many = (
        [problem.cut([_step(ladder, level) for ladder in steps]) for level in some]
        for some in ([k for k in levels if k < whole], [k for k in levels if k >= whole])
    )
    return [cuts for cuts in (few, many) if cuts]


def _ladder(topology: Topology, collective: Collective, cost: CostModel) -> dict[int, Collective]:
    """The collective cut in several ways, by the number of parts of its buffer."""
    shares = collective.pattern.shares(collective.ranks)
    ladder = {}
    if collective.pattern.any_cut and collective.parts is None:
        most = min(shares - 1, max(collective.size // collective.alignment, 1))
        for pieces in (k for k in _CANDIDATES if k <= most):
            uncut = all_reduce_of(
                collective.group, collective.size, pieces, alignment=collective.alignment
            )
            ladder[pieces] = replace(uncut, relay=collective.relay)
    for k in _counts(topology, collective, cost):
        ladder[shares * k] = replace(collective, chunks_per_share=k)
    return ladder


def _step(ladder: dict[int, Collective], level: int) -> Collective:
    """The most parts up to so many, or the fewest there are."""
    return ladder[max([pieces for pieces in ladder if pieces <= level] or [min(ladder)])]


@dataclass
class _Climb:
    options: Sequence[Option]
    plan: Callable[[Problem], Algorithm | None]
    known: int
    best: Algorithm | None = None
    spent: int = 0
    mark: int = NEVER  # what the last option took that was worth it

    def along(self, path: range) -> None:
        """Try options one after the other, until some in a row bring nothing."""
        misses = 0
        for i in path:
            option, least = self.options[i], self.known
            if self.best is not None:
                least = min(least, self.best.time)
            if least < NEVER and option.forecast * WORTH >= least:
                continue
            patience = _PATIENCE if self.spent > _LITTLE_WORK else _MORE_PATIENCE
            if option.forecast == 0:
                patience = 1  # nothing says that more may be better
            if misses >= patience or (self.spent and self.spent + option.work > _MOST_WORK):
                return
            misses = 0 if self.try_one(option) else misses + 1

    def try_one(self, option: Option) -> bool:
        """Plan an option; whether that is worth it."""
        tried = self.plan(option.problem)
        self.spent += option.work
        if tried is None:
            return False
        worth = tried.time * WORTH < self.mark
        if self.best is None or tried.time * _BETTER < self.best.time:
            self.best = tried
        if worth:
            self.mark = tried.time
        return worth


def _counts(topology: Topology, collective: Collective, cost: CostModel) -> list[int]:
    """Sensible counts: chunks of some bytes that fit where they go, and not too much work."""
    by_work = _MOST_WORK // _work(topology, replace(collective, chunks_per_share=1))
    counts = counts_within(collective, by_work)
    if cost.switching == "store-and-forward" and topology.buffers:
        return _fitting(topology, counts, collective, min(topology.buffers.values()))
    return counts


def counts_within(collective: Collective, most: int) -> list[int]:
    """Sensible counts up to `most`, but at least one: chunks of some bytes."""
    shares = collective.pattern.shares(collective.ranks)
    by_bytes = collective.size // (shares * collective.alignment)
    alike = shares > 1 and not collective.pattern.own_buffers
    sensible = max(_MOST_OF_A_SHARE, _MOST_OF_A_BUFFER // shares) if alike else _CANDIDATES[-1]
    return [k for k in _CANDIDATES if k <= max(1, min(most, by_bytes, sensible))]


def _fitting(topology: Topology, counts: list[int], collective: Collective, room: int) -> list[int]:
    """The counts whose chunks fit in `room` bytes; if none does, the least that does.

    If that is too many, the counts as they are: there may be a way besides the small buffers.
    """
    units_a_chunk = room // collective.alignment
    if units_a_chunk == 0:
        return counts
    whole = replace(collective, chunks_per_share=1).chunks.largest
    least = -(-whole // (units_a_chunk * collective.alignment))
    if least > counts[-1]:
        affordable = _work(topology, replace(collective, chunks_per_share=least)) <= _MOST_WORK
        return [least] if affordable else counts
    return [k for k in counts if k >= least] or counts


def _work(topology: Topology, collective: Collective) -> int:
    """About how many transfers are planned, relays included; behind switches each is dearer."""
    each = _HOPS_OF_A_PATH if collective.pattern.own_buffers else topology.npus
    if topology.switches:
        each *= 1 + topology.npus // _NPUS_A_WEIGHT
    return collective.part_count * each * collective.chunks_per_share


def _forecast(problem: Problem) -> float:
    """A lower bound for whole chunks, and what is easily lost on top of it.

    On links of different speeds that is half a slot of the slowest at the end; where every chunk
    goes its own way, half a slot for each hop of a long one, until links far away are busy.
    """
    topology, collective, lost = problem.topology, problem.demand, 0.0
    if len(np.unique(topology.bandwidth)) > 1:
        lost = 1e12 / float(topology.bandwidth.min())
    if collective.pattern.own_buffers and topology.links:
        away = _core.distances(topology.core, collective.group[0], False)[list(collective.group)]
        hops = 1.0 if topology.switches else float(away.max())  # switches let chunks run through
        lost = max(lost, hops * 1e12 / float(np.median(topology.bandwidth)))
    return problem.task.goal + 0.5 * problem.chunks.largest * lost
