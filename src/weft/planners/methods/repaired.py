"""Networks that were vertex-transitive before some links or NPUs failed.

The symmetric plan of the whole network goes on as if nothing had happened; what does not get
through is brought afterwards, over the links that are left. A link fewer into an NPU costs it that
link's share of an All-Gather's chunks; brought over the others, they arrive as soon as its ingress
allows. What an All-to-All loses is little, and comes from and goes to many places: it is an
exchange of its own among the pairs that are left over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, RepairedExchange, RepairedRows, SymmetricRows, Timing
from weft.algorithm.repaired import demand_chunks, lost_chunks, missing_deliveries
from weft.collective import Chunks, Collective
from weft.collective.chunks import singles
from weft.cost import CostModel
from weft.errors import InputError
from weft.memory import check_fits
from weft.planners.chunking import climb, options
from weft.planners.methods.symmetric import symmetric_rows
from weft.planners.methods.unicast import plan_pairs
from weft.planners.planner import Planner, add
from weft.planners.problem import Problem, Task
from weft.planners.schedule import transfers_of
from weft.planners.symmetry import all_do_the_same
from weft.ragged import offsets_of
from weft.topology.durations import held, over_links
from weft.topology.model import Topology
from weft.topology.translations import Translations
from weft.units import CLOCK_PS

_ONE_WAY = ("all-gather", "all-to-all")  # never run backwards
_BYTES_A_DELIVERY = 160  # that is missing, while it is found and brought
_BYTES_A_DETOUR = 250  # a row of the patch of an All-to-All, while it is planned


def can_repair(topology: Topology, demands: Sequence[Collective]) -> bool:
    """Whether this is a collective of all NPUs that are left of a network that was symmetric."""
    whole = topology.whole
    if len(demands) != 1 or whole is None or whole.switches:
        return False
    demand, failed = demands[0], whole.links - topology.links
    return (
        all_do_the_same(demand, topology.members.tolist())
        and 0 < failed < len(topology.members)  # so the first row of the plan is there for somebody
        and (demand.kind in _ONE_WAY or topology.reverse_links is not None)
    )


class Repaired(Planner):
    """The plan of the whole network, less what failures take of it, and a patch."""

    name = "repaired"
    summary = "a symmetric plan after failures: what is lost is brought afterwards"
    rank = 10
    beside = judged = False

    def fits(self, problem: Problem) -> str | None:
        if can_repair(problem.topology, problem.demands):
            return None
        return "plans one collective of all NPUs that are left of a network that was symmetric"

    def plans_alike(self, problem: Problem) -> bool:
        return self.fits(problem) is None

    def is_worth_trying(self, problem: Problem, best: Algorithm | None) -> bool:  # noqa: ARG002
        return best is None

    def plan(self, problem: Problem) -> Algorithm:
        repaired = plan_repaired(problem)
        if repaired is None:
            raise InputError("method repaired finds nothing that can be repaired; use auto")
        return repaired

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:
        return climb(options(problem), plan_repaired, best)


def plan_repaired(problem: Problem) -> Algorithm | None:
    """The whole network's plan with a patch; None if some NPU is cut off, or nothing is lost."""
    demand = problem.demand
    repair = _repaired_exchange if demand.pattern.own_buffers else _repaired_gather
    rows = repair(problem)
    if rows is None:
        return None
    timing = Timing(problem.topology, problem.cost)
    return Algorithm((demand,), rows, timing, {"method": "repaired"})


def _of_whole(problem: Problem, kind: str) -> tuple[SymmetricRows, int]:
    """The plan of the whole network for chunks that are all as long as the longest; its time."""
    topology, demand = problem.topology, problem.demand
    whole, pieces = topology.require_whole(), demand.chunks_per_share
    full = Collective.of(
        kind, range(whole.npus), demand.largest_chunk * pieces * whole.npus, pieces
    )
    full = replace(full, alignment=demand.largest_chunk)
    rows = symmetric_rows(replace(problem, task=Task(whole, (full,), problem.cost)))
    return rows, Algorithm((full,), rows, Timing(whole, problem.cost)).time


def _repaired_gather(problem: Problem) -> RepairedRows | None:
    """An All-Gather, which may stand for the same backwards or both."""
    topology, demand = problem.topology, problem.demand
    npus, pieces = topology.npus, demand.chunks_per_share
    base, time = _of_whole(problem, "all-gather")
    lost = missing_deliveries(base, topology, pieces)
    check_fits(f"repairing {demand.kind} on {topology.name}", len(lost) * _BYTES_A_DELIVERY)
    duration = over_links(topology, demand.largest_chunk)
    if time + len(lost) * int(duration.max(initial=0)) >= CLOCK_PS:
        return None
    piece, npu = np.divmod(lost, npus)
    owner, piece = np.divmod(piece, pieces)
    chunk = (topology.ranks[owner] * pieces + piece).astype(np.int32)
    order = np.lexsort((chunk, npu))
    offsets = offsets_of(np.bincount(npu, minlength=npus))
    problem.planning("repair", len(lost))
    patch = _core.complete(
        topology.core,
        _core.Rows(offsets=offsets, items=chunk[order]),
        held(topology, problem.cost, demand.largest_chunk),
        duration,
        time,
        problem.progress,
    )
    if len(patch[0]) != len(lost):
        return None
    left, pieces_sent = len(topology.members), len(base.chunk)
    count = left * (pieces_sent - pieces * (npus - left))
    return RepairedRows(base, count, *patch, demand.kind == "all-reduce")


def _repaired_exchange(problem: Problem) -> RepairedExchange | None:
    """An All-to-All, then the pairs whose way is broken, as if they were all there is."""
    topology, demand = problem.topology, problem.demand
    base, time = _of_whole(problem, "all-to-all")
    lost = lost_chunks(base, topology, demand)
    hops = np.bincount(base.chunk, minlength=base.npus * demand.chunks_per_share)
    dropped = int(hops[_seen_from_source(lost, topology, demand)].sum())
    keys = lost[demand_chunks(lost, topology, demand) >= 0]
    if not len(keys):
        return None
    chunks = _pairs(keys, topology, demand)
    distances = len(np.unique(chunks.post)) * topology.npus  # of two bytes each
    needed = dropped * _BYTES_A_DETOUR + 2 * distances
    check_fits(f"repairing {demand.kind} on {topology.name}", needed)
    goal = _busiest_end(topology, chunks, problem.cost)
    schedule = plan_pairs(problem, topology, chunks, goal)
    patch, _ = transfers_of([schedule], topology, problem.cost, chunks.bytes)
    times = patch.require_times()
    return RepairedExchange(
        base,
        len(base) - dropped + len(patch),
        demand_chunks(keys, topology, demand)[patch.chunk],
        times.route,  # without switches a link
        times.start + time,
    )


def _busiest_end(topology: Topology, chunks: Chunks, cost: CostModel) -> int:
    """How long some NPU must take to send what it has, or to receive what it gets: picoseconds."""
    hold = held(topology, cost, int(chunks.bytes.min()))
    slowest = []
    for ends, links in ((chunks.pre, topology.src), (chunks.post, topology.dst)):
        rate = np.bincount(links, weights=1 / np.maximum(hold, 1), minlength=topology.npus)
        count = np.bincount(ends, minlength=topology.npus)
        slowest.append((count / np.maximum(rate, 1e-30))[count > 0].max())
    return int(min(max(slowest), CLOCK_PS))


def _seen_from_source(
    keys: NDArray[np.int64], topology: Topology, demand: Collective
) -> NDArray[np.int64]:
    """Which of NPU 0's chunks those of the whole network are moved from."""
    pair, piece = np.divmod(keys, demand.chunks_per_share)
    src, dst = np.divmod(pair, topology.npus)
    away = Translations.of(topology.require_whole()).between(src, dst)
    return away * demand.chunks_per_share + piece


def _pairs(keys: NDArray[np.int64], topology: Topology, demand: Collective) -> Chunks:
    """Some chunks of the whole network as a table of their own."""
    src, dst = np.divmod(keys // demand.chunks_per_share, topology.npus)
    pieces = demand.piece_bytes
    sizes = pieces[demand_chunks(keys, topology, demand) % len(pieces)]
    return Chunks.build(
        sizes,
        np.cumsum(sizes) - sizes,
        src.astype(np.int32),
        dst.astype(np.int32),
        singles(np.arange(topology.npus)),
        reduce=False,
    )


add(Repaired())
