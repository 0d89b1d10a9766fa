"""A second judge, slow and plain: sets of contributions, event by event, in pure Python.

It says whether an algorithm is right, not what is wrong with it.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from weft.algorithm import Algorithm, Buffer, place

Value = tuple[int, Counter[int]]  # a chunk, and how often each contribution is in the sum
Hold = tuple[int, int, int, int]  # link, begin, until, row


def is_right(algorithm: Algorithm) -> bool:
    """Whether the algorithm is right; its numbers must be in range."""
    rows = list(range(len(algorithm.transfers)))
    in_order = [(row, step) for row in rows for step in ("read", "write")]
    if not _stays_in_reach(algorithm):
        return False
    if not _flows(algorithm, in_order) or not _deps_hold(algorithm):
        return False
    if not algorithm.timed:
        return True
    return (
        _routes_fit(algorithm) and _times_fit(algorithm) and _flows(algorithm, _events(algorithm))
    )


def _stays_in_reach(a: Algorithm) -> bool:
    for chunk, npu in zip(a.transfers.chunk, a.transfers.dst, strict=True):
        reach = int(a.chunks.reach[chunk])
        if reach >= 0 and npu not in a.chunks.members(reach):
            return False
    return True


def _deps_hold(a: Algorithm) -> bool:
    t = a.transfers
    if t.deps is None or t.dep_offsets is None:
        return True
    return all(
        dep < row and (t.end is None or t.start is None or t.end[dep] <= t.start[row])
        for row in range(len(t))
        for dep in t.deps[t.dep_offsets[row] : t.dep_offsets[row + 1]]
    )


def _links(a: Algorithm, row: int) -> list[int]:
    route = a.transfers.route[row]
    return [int(x) for x in a.routes.links[a.routes.offsets[route] : a.routes.offsets[route + 1]]]


def _routes_fit(a: Algorithm) -> bool:
    for row in range(len(a.transfers)):
        at = a.transfers.src[row]
        links = _links(a, row)
        for number, link in enumerate(links):
            if a.topology.src[link] != at or (number and at < a.topology.npus):
                return False
            at = a.topology.dst[link]
        if at != a.transfers.dst[row] or (links and a.transfers.src[row] == at):
            return False
    return True


def hop(a: Algorithm, row: int) -> tuple[int, list[tuple[int, int, int]]]:
    """The duration of a row's hop, and (link, begin, until) for each of its links."""
    size = int(a.chunks.bytes[a.transfers.chunk[row]])
    links = _links(a, row)
    pushes = [-(-size * 10**12 // int(a.topology.bandwidth[link])) for link in links]
    alphas = [int(a.topology.latency[link]) for link in links]
    forward = a.cost.switching == "store-and-forward"
    duration = (sum(pushes) if forward else max(pushes, default=0)) + sum(alphas)
    rates = [int(a.topology.bandwidth[link]) for link in links]
    slowest = rates.index(min(rates)) if rates else 0
    holds = []
    for i, link in enumerate(links):
        length = pushes[i] if forward else _held(a, size, links, i, slowest)
        length += alphas[i] if a.cost.latency_model == "blocking" else 0
        if forward:
            begin = sum(pushes[:i]) + sum(alphas[:i])
        else:
            begin = 0 if i <= slowest else duration - length
        begin += int(a.transfers.start[row])
        holds.append((link, begin, begin + length))
    return duration, holds


def _held(a: Algorithm, size: int, links: list[int], i: int, slowest: int) -> int:
    """How long link i is held: as any link between it and the slowest holds back what flows."""
    lengths = []
    for j in range(min(i, slowest), max(i, slowest) + 1):
        between = [int(a.topology.dst[link]) for link in links[min(i, j) : max(i, j)]]
        stored = sum(a.topology.buffers.get(switch, size) for switch in between)
        lengths.append(-(-max(0, size - stored) * 10**12 // int(a.topology.bandwidth[links[j]])))
    return max(lengths)


def _chunks_fit(a: Algorithm) -> bool:
    """Whether every switch that forwards whole chunks can store those it forwards."""
    return a.cost.switching == "cut-through" or all(
        a.topology.buffers.get(int(a.topology.dst[link]), 1 << 62) >= a.chunks.bytes[chunk]
        for row, chunk in enumerate(a.transfers.chunk)
        for link in _links(a, row)
    )


def _times_fit(a: Algorithm) -> bool:
    t = a.transfers
    if not _chunks_fit(a):
        return False
    holds = []
    for row in range(len(t)):
        duration, mine = hop(a, row)
        if t.start[row] < 0 or t.end[row] - t.start[row] != duration:
            return False
        holds += [(*hold, row) for hold in mine]
    return all(
        one[0] != two[0]
        or one[2] <= two[1]
        or two[2] <= one[1]
        or is_multicast(a, one, two)
        or is_sum(a, one, two)
        for one, two in combinations(holds, 2)
    )


def is_multicast(a: Algorithm, one: Hold, two: Hold) -> bool:
    """Whether two holds of one link are one: a tree with its branches at switches that copy."""
    t, (link, begin, until, row), (_, begin2, until2, row2) = a.transfers, one, two
    if (begin, until) != (begin2, until2) or t.reduce[row] or t.reduce[row2]:
        return False
    if any(column[row] != column[row2] for column in (t.chunk, t.src, t.start)):
        return False
    if t.src_place is not None or t.dst_place is not None:
        alike = t.src_place is not None and t.src_place[row] == t.src_place[row2]
        if not alike or a.chunks.reduce[t.chunk[row]]:
            return False
    left, right = _links(a, row), _links(a, row2)
    common = []
    for x, y in zip(left, right, strict=False):
        if x != y:
            break
        common.append(x)
    if link not in common or common in (left, right):
        return False
    return int(a.topology.dst[common[-1]]) in a.topology.copying


def is_sum(a: Algorithm, one: Hold, two: Hold) -> bool:
    """Whether two holds of one link are one: a tree that grows together at switches that add."""
    t, (link, begin, until, row), (_, begin2, until2, row2) = a.transfers, one, two
    if (begin, until) != (begin2, until2) or not (t.reduce[row] and t.reduce[row2]):
        return False
    if any(column[row] != column[row2] for column in (t.chunk, t.dst, t.end)):
        return False
    written = t.chunk if t.dst_place is None else t.dst_place
    if written[row] != written[row2]:
        return False
    left, right = _links(a, row), _links(a, row2)
    common: list[int] = []
    while len(common) < min(len(left), len(right)):
        if left[-1 - len(common)] != right[-1 - len(common)]:
            break
        common.append(left[-1 - len(common)])
    if link not in common or len(common) in (len(left), len(right)):
        return False
    # What arrives as one is not written in two parts, with something else between them.
    for other in range(min(row, row2) + 1, max(row, row2)):
        same = all(column[other] == column[row] for column in (t.dst, t.end, written))
        if same and not t.reduce[other]:
            return False
    return int(a.topology.src[common[-1]]) in a.topology.adding


def _events(a: Algorithm) -> list[tuple[int, str]]:
    """Writes before reads at a time, but a local row writes right after its own read."""
    t, keyed = a.transfers, []
    for row in range(len(t)):
        keyed.append(((t.start[row], 1, row, 0), (row, "read")))
        local = t.src[row] == t.dst[row]
        when = (t.start[row], 1, row, 1) if local else (t.end[row], 0, row, 0)
        keyed.append((when, (row, "write")))
    return [event for _, event in sorted(keyed)]


def _flows(a: Algorithm, events: list[tuple[int, str]]) -> bool:
    t, chunks = a.transfers, a.chunks
    held: dict[tuple[int, int], Value] = {}
    written = set()
    for chunk in range(len(chunks)):
        for npu in chunks.members(chunks.pre[chunk]):
            for buffer in (Buffer.HOME, Buffer.INPUT):
                mine = int(npu) if chunks.reduce[chunk] else 0
                held[int(npu), place(buffer, chunk)] = (chunk, Counter([mine]))
    flying: dict[int, Value] = {}
    for row, step in events:
        chunk = int(t.chunk[row])
        if t.reduce[row] and not chunks.reduce[chunk]:
            return False
        if step == "read":
            where = int(t.src[row]), int(t.src_place[row]) if t.src_place is not None else chunk
            if where not in held or held[where][0] != chunk:
                return False
            flying[row] = held[where]
            continue
        where = int(t.dst[row]), int(t.dst_place[row]) if t.dst_place is not None else chunk
        brought = flying.pop(row)
        if t.reduce[row] and where in held:
            if held[where][0] != chunk:
                return False
            brought = (chunk, held[where][1] + brought[1])
        held[where] = brought
        written.add(where)
    return _ends_well(a, held, written)


def _ends_well(
    a: Algorithm, held: dict[tuple[int, int], Value], written: set[tuple[int, int]]
) -> bool:
    chunks = a.chunks
    for chunk in range(len(chunks)):
        parts = chunks.members(chunks.pre[chunk]) if chunks.reduce[chunk] else [0]
        result = (chunk, Counter(int(part) for part in parts))
        for npu in chunks.members(chunks.post[chunk]):
            home, given, output = ((int(npu), place(b, chunk)) for b in list(Buffer)[:3])
            touched = [where for where in (home, given) if where in written]
            places = [output] if output in written else touched or [home]
            if result not in [held.get(where) for where in places]:
                return False
    return True
