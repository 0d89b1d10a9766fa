"""The ways in which ASTRA-sim can run an algorithm: between NPUs, or link by link.

A simulator starts whatever is ready. To keep the plan's order on each link, a send can be held
back by a *gate*: a COMP of no duration, which ASTRA-sim charges 1 ns. The gate of a send waits for
what the send before it on the link waited for, so it is started 1 ns after that one at the
earliest, and links serve in order of start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Routes
from weft.arrays import Bool, Int32, Int64
from weft.cost import CostModel
from weft.errors import InputError
from weft.export.astra_sim._messages import Cut, Pieces, Rows, cut, merged, running_max, split
from weft.export.astra_sim._shapes import Shape
from weft.ragged import distinct_pairs, offsets_of
from weft.topology import Topology
from weft.units import PS_PER_US, format_bandwidth, format_time

# What a hop may be off the plan: floors of its arrival and its hold, a sum, a gate.
_DRIFT_PS = 4000


@dataclass(frozen=True, eq=False)
class Pace:
    """Which sends have gates, and after which other send each of those comes (-1: none)."""

    gate: Bool
    after: Int32


def paced(rows: Rows, queue: Int64, push: NDArray[np.float64] | None, small: Bool) -> Pace:
    """Gates for timed rows where the order in which data comes is not the plan's.

    Parameters
    ----------
    queue
        The link, as a number, that each row waits for.
    push
        How long each row holds it, in picoseconds, if the simulator's times are the plan's up to
        rounding; then a row that is ready clearly after the one before it needs no gate.
    small
        Rows that must not be the first thing to happen: they take less than 1 ns.
    """
    gate = small & rows.fresh & ~rows.local
    after = np.full(len(rows), -1, dtype=np.int32)
    if rows.start is None:
        return Pace(gate, after)
    sent = np.flatnonzero(~rows.local)
    order = sent[np.lexsort((sent, rows.start[sent], queue[sent]))]
    line = queue[order]
    follows = np.zeros(len(order), dtype=bool)
    follows[1:] = line[1:] == line[:-1]
    if push is not None and len(order):
        segment = np.cumsum(~follows) - 1
        latest = running_max(rows.ready[order], segment)
        before = np.concatenate([latest[:1], latest[:-1]])
        ready = rows.ready[order]
        drift = _DRIFT_PS * (2 + ready / max(float(push[order].min()), 1.0))
        follows &= ready <= before + drift
    held = order[follows]
    ahead = order[np.flatnonzero(follows) - 1]
    gate[held] = True
    after[held] = ahead
    if rows.dep_offsets is not None:  # what it waits for is more than its data
        gate[ahead[np.diff(rows.dep_offsets)[ahead] > 0]] = True
    return Pace(gate, after)


_MAX_BYTES = 1 << 62


@dataclass(frozen=True, eq=False)
class Form:
    """Messages for one network file.

    Attributes
    ----------
    ranks
        How many ranks run: NPUs, and after them switches where these are ranks.
    rows
        The messages; `bytes` are those that ASTRA-sim gets.
    pace
        Which sends are held back.
    delay
        Microseconds from each message's arrival to its use; None if there are none.
    shapes
        The network file's dimensions; none where the network is said in another way.
    parts
        Messages that each chunk is sent in.
    notes
        What is not as it was planned, in words.
    """

    ranks: int
    rows: Rows
    pace: Pace
    delay: Int32 | None
    shapes: tuple[Shape, ...]
    parts: int
    notes: tuple[str, ...]


def tracks(topology: Topology, cost: CostModel | None) -> bool:
    """Whether the plan's times are the simulator's up to rounding, on links it has as they are."""
    return cost == CostModel("pipelined", "store-and-forward") or (
        cost == CostModel("pipelined") and not topology.switches
    )


def between_npus(
    rows: Rows,
    topology: Topology,
    cost: CostModel | None,
    shapes: tuple[Shape, ...],
    parts: int = 1,
) -> Form:
    """Messages from NPU to NPU: the backend knows the network and routes them."""
    rows = split(rows, parts)
    links = _first_links(rows)
    push = _push(rows.bytes, topology.bandwidth[links]) if tracks(topology, cost) else None
    fastest = max((shape.bandwidth for shape in shapes), default=0)
    pace = paced(rows, links, push, rows.bytes < _bytes_a_ns(fastest))
    return Form(topology.npus, rows, pace, None, shapes, parts, ())


def by_links(rows: Rows, topology: Topology, cost: CostModel | None, in_parts: int = 1) -> Form:
    """Messages over one link each; nodes with a link are a pair of FullyConnected ranks."""
    links = rows.routes.links
    single = Routes.of_links(len(links))
    pieces = Pieces(rows.routes.offsets, topology.src[links], topology.dst[links], single)
    messages, parts = cut(rows, pieces)
    link = _links_of(rows, parts)
    speeds = _Speeds.of(topology, np.unique(link[parts.piece >= 0]))
    delay_of, late = _delays(rows.routes, speeds)
    error = int(np.abs(late[parts.piece[parts.piece >= 0]]).max(initial=0))
    if rows.start is not None:
        start = rows.start[parts.owner]
        messages = _timed(messages, parts, rows, start, topology, cost)
        if topology.copying:
            same = _transmissions(messages, parts, rows, start)
            messages = merged(messages, same)
            link = link[same == np.arange(len(same))]
    messages, link = split(messages, in_parts), np.repeat(link, in_parts)
    exact = tracks(topology, cost) and error == 0 and not speeds.parallel
    push = _push(messages.bytes, speeds.bandwidth[link]) if exact else None
    sized = replace(messages, bytes=_scaled(messages, speeds, link))
    small = sized.bytes < _bytes_a_ns(speeds.fastest)
    pace = paced(sized, speeds.pair[link], push, small)
    delay = np.where(sized.local, 0, delay_of[sized.route] if len(delay_of) else 0)
    shape = Shape("FullyConnected", topology.nodes, speeds.fastest, speeds.shortest)
    return Form(
        topology.nodes,
        sized,
        pace,
        _whole_us(delay),
        (shape,),
        in_parts,
        tuple(_notes(topology, cost, speeds, error)),
    )


def _first_links(rows: Rows) -> Int64:
    """The link over which each row leaves its source; 0 where it does not."""
    if not len(rows.routes.links):
        return np.zeros(len(rows), dtype=np.int64)
    first = rows.routes.offsets[np.where(rows.local, 0, rows.route)]
    return rows.routes.links[np.minimum(first, len(rows.routes.links) - 1)].astype(np.int64)


def _links_of(rows: Rows, parts: Cut) -> Int64:
    """The link of each message; 0 where it stays on its NPU."""
    links = rows.routes.links if len(rows.routes.links) else np.zeros(1, dtype=np.int32)
    return np.where(parts.piece < 0, 0, links[parts.piece]).astype(np.int64)


def _push(size: Int64, bandwidth: Int64) -> NDArray[np.float64]:
    return size * 1e12 / bandwidth


def _bytes_a_ns(bandwidth: int) -> int:
    return -(-bandwidth // 10**9)


@dataclass(frozen=True, eq=False)
class _Speeds:
    """Speeds of the ordered pairs of nodes that are used; by link."""

    pair: Int64
    bandwidth: Int64  # of all links of the pair that are used, together
    latency: Int64
    fastest: int
    slowest: int
    shortest: int
    longest: int
    parallel: int  # how many pairs have several links

    @classmethod
    def of(cls, topology: Topology, used: Int64) -> _Speeds:
        if not len(used):
            used = np.arange(1)
        pair = topology.src.astype(np.int64) * topology.nodes + topology.dst
        pairs, number = np.unique(pair[used], return_inverse=True)
        number = number.reshape(-1)
        rate = np.zeros(len(pairs), dtype=np.int64)
        np.add.at(rate, number, topology.bandwidth[used])
        delay = np.zeros(len(pairs), dtype=np.int64)
        np.maximum.at(delay, number, topology.latency[used])
        bandwidth, latency = topology.bandwidth.copy(), topology.latency.copy()
        bandwidth[used], latency[used] = rate[number], delay[number]
        ends = (int(rate.max()), int(rate.min()), int(delay.min()), int(delay.max()))
        return cls(pair, bandwidth, latency, *ends, int((np.bincount(number) > 1).sum()))


def _scaled(rows: Rows, speeds: _Speeds, link: Int64) -> Int64:
    """Bytes that take as long on the fastest link as the message on its own."""
    if speeds.fastest == speeds.slowest:
        return rows.bytes
    sizes, rates, kind = distinct_pairs(rows.bytes, speeds.bandwidth[link])
    pairs = zip(sizes.tolist(), rates.tolist(), strict=True)
    scaled = [(2 * size * speeds.fastest + own) // (2 * own) for size, own in pairs]
    if max(scaled, default=0) > _MAX_BYTES:
        raise InputError(
            f"links of {format_bandwidth(speeds.slowest)} and {format_bandwidth(speeds.fastest)} "
            "are too far apart for ASTRA-sim, which knows one bandwidth"
        )
    return np.where(rows.local, rows.bytes, np.array(scaled, dtype=np.int64)[kind])


def _delays(routes: Routes, speeds: _Speeds) -> tuple[Int64, Int64]:
    """Whole microseconds to wait after each link of each route, and what is then missing, in ps.

    What one link's rounding leaves is taken along to the next.
    """
    extra = np.maximum(speeds.latency[routes.links] - speeds.shortest, 0)
    total = offsets_of(extra)
    base = np.repeat(total[routes.offsets[:-1]], np.diff(routes.offsets))
    here, before = total[1:] - base, total[:-1] - base
    rounded = (here + PS_PER_US // 2) // PS_PER_US
    delay = rounded - (before + PS_PER_US // 2) // PS_PER_US
    return delay, here - rounded * PS_PER_US


def _whole_us(delay: Int64) -> Int32 | None:
    if delay.max(initial=0) > np.iinfo(np.int32).max:
        raise InputError(f"a link's latency is {delay.max()} us over another's: too far apart")
    return delay.astype(np.int32) if delay.any() else None


def _timed(
    messages: Rows,
    parts: Cut,
    rows: Rows,
    start: Int64,
    topology: Topology,
    cost: CostModel | None,
) -> Rows:
    """Messages with the times at which the plan has them enter their links."""
    if not parts.first.all():
        start = start + _offsets(messages, parts, rows, topology, cost)
    return replace(messages, start=start, ready=np.where(parts.first, messages.ready, start))


def _offsets(
    messages: Rows, parts: Cut, rows: Rows, topology: Topology, cost: CostModel | None
) -> Int64:
    """When each link is entered after the start of its hop, as `hop` in cpp/base/cost.h has it.

    Only the order matters, and that no link comes before the one that leads to it: buffers that
    hold back are left out.
    """
    link = _links_of(rows, parts)
    push = np.ceil(_push(messages.bytes, topology.bandwidth[link])).astype(np.int64)
    passed = np.cumsum(np.where(parts.piece < 0, 0, push + topology.latency[link]))
    begins = np.flatnonzero(parts.first)
    hop = np.cumsum(parts.first) - 1
    waited = np.concatenate([[0], passed[:-1]])
    waited -= waited[begins][hop]
    if cost is not None and cost.switching == "store-and-forward":
        return waited
    # Cut-through: links up to the slowest from the start, those after it up to the end.
    slowest = np.maximum.reduceat(push, begins)[hop]
    reached = np.cumsum(push == slowest)
    late = reached - (push == slowest) - (reached - (push == slowest))[begins][hop] > 0
    duration = slowest + np.add.reduceat(topology.latency[link], begins)[hop]
    return running_max(np.where(late, duration - push, 0), hop)


def _transmissions(messages: Rows, parts: Cut, rows: Rows, start: Int64) -> Int64:
    """The first message that is the same transmission as each: see docs/cost-model.md."""
    prefix = _prefixes(rows.routes)[parts.piece]
    columns = (prefix, rows.src[parts.owner], start, messages.chunk)
    order = np.lexsort((np.arange(len(messages)), *columns))
    new = np.ones(len(order), dtype=bool)
    for column in columns:
        new[1:] &= column[order][1:] == column[order][:-1]
    new[1:] = ~new[1:]
    shared = np.empty(len(order), dtype=np.int64)
    shared[order] = order[np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    alone = parts.last | (parts.piece < 0)
    return np.where(alone, np.arange(len(order)), shared)


def _prefixes(routes: Routes) -> Int64:
    """A number for the links up to each link of each route: equal where these are equal."""
    lengths = np.diff(routes.offsets)
    number = np.full(len(routes.links), -1, dtype=np.int64)
    width = int(routes.links.max(initial=0)) + 1
    used = 0
    for position in range(int(lengths.max(initial=0))):
        at = routes.offsets[:-1][lengths > position] + position
        before = number[at - 1] if position else np.full(len(at), -1)
        key = (before + 1) * width + routes.links[at]
        number[at] = np.unique(key, return_inverse=True)[1].reshape(-1) + used
        used = int(number.max()) + 1
    return number


def _notes(topology: Topology, cost: CostModel | None, speeds: _Speeds, error: int) -> list[str]:
    notes = []
    if topology.switches:
        notes.append(
            f"the {topology.switches} switches are ranks, from {topology.npus} on, that receive "
            "each message whole and send it on"
        )
    if speeds.slowest != speeds.fastest:
        rates = f"{format_bandwidth(speeds.slowest)} to {format_bandwidth(speeds.fastest)}"
        notes.append(
            f"links have {rates}, but ASTRA-sim knows one: sizes are scaled to the fastest, so "
            "comm_size is not the bytes that move"
        )
    if speeds.longest != speeds.shortest:
        delays = f"{format_time(speeds.shortest)} to {format_time(speeds.longest)}"
        notes.append(
            f"links have latencies of {delays}: what is over the shortest is a COMP of whole "
            f"microseconds after the receive, at most {format_time(error)} off a hop"
        )
    if speeds.parallel:
        notes.append(
            f"{speeds.parallel} pairs of nodes have parallel links: each is one link of their "
            "joint bandwidth"
        )
    if topology.copying and cost is not None:
        notes.append("switches that copy receive a multicast once and send it to each taker")
    return notes
