"""Classical algorithms as traces of others: nodes and waits only, from which chunks are found."""

from __future__ import annotations

from trace_writer import TraceWriter

SHARE = 1024


def ring_gather(n, pieces=1, both_ways=False):
    """All-Gather round a ring; the pieces of a share may go round in turns."""
    trace = TraceWriter(n)
    for piece in range(pieces):
        step = -1 if both_ways and piece % 2 else 1
        last = [[] for _ in range(n)]
        for _ in range(n - 1):
            size = SHARE // pieces
            got = [trace.message(r, (r + step) % n, size, after=last[r]) for r in range(n)]
            last = [[got[(r - step) % n]] for r in range(n)]
    return trace, SHARE * n


def half_rings_gather(n):
    """All-Gather in a ring where each share goes half way round on each side."""
    trace = TraceWriter(n)
    for step, hops in ((1, n // 2), (-1, n - 1 - n // 2)):
        last = [[] for _ in range(n)]
        for _ in range(hops):
            got = [trace.message(r, (r + step) % n, SHARE, after=last[r]) for r in range(n)]
            last = [[got[(r - step) % n]] for r in range(n)]
    return trace, SHARE * n


def doubling_gather(n):
    """All-Gather by recursive doubling: messages of 1, 2, 4, ... shares."""
    trace = TraceWriter(n)
    received = [[] for _ in range(n)]
    step = 1
    while step < n:
        size = SHARE * step
        got = {r: trace.message(r ^ step, r, size, after=received[r ^ step]) for r in range(n)}
        for r in range(n):
            received[r].append(got[r])
        step *= 2
    return trace, SHARE * n


def ring_scatter(n, comps=True):
    """Reduce-Scatter round a ring."""
    trace = TraceWriter(n)
    last = [[] for _ in range(n)]
    for _ in range(n - 1):
        got = [trace.message(r, (r + 1) % n, SHARE, after=last[r]) for r in range(n)]
        last = [[got[r - 1]] for r in range(n)]
        if comps:
            last = [[trace.comp(r, after=last[r])] for r in range(n)]
    return trace, SHARE * n


def halving_scatter(n, comps=True):
    """Reduce-Scatter by recursive halving: messages of n/2, n/4, ... shares."""
    trace = TraceWriter(n)
    sums = [[] for _ in range(n)]
    step = n // 2
    while step:
        got = {r: trace.message(r ^ step, r, SHARE * step, after=sums[r ^ step]) for r in range(n)}
        for r in range(n):
            sums[r] = [trace.comp(r, after=[got[r], *sums[r]])] if comps else [*sums[r], got[r]]
        step //= 2
    return trace, SHARE * n


def direct_scatter(n, comps=True):
    """Reduce-Scatter in one step: everybody sends each share to its owner."""
    trace = TraceWriter(n)
    for r in range(n):
        got = [trace.message(s, r, SHARE) for s in range(n) if s != r]
        if comps:
            last = []
            for node in got:
                last = [trace.comp(r, after=[node, *last])]
    return trace, SHARE * n


def ring_reduce(n, comps=True):
    """All-Reduce round a ring: a sum goes round, then the result."""
    trace = TraceWriter(n)
    last = [[] for _ in range(n)]
    for hop in range(2 * (n - 1)):
        got = [trace.message(r, (r + 1) % n, SHARE, after=last[r]) for r in range(n)]
        last = [[got[r - 1]] for r in range(n)]
        if comps and hop < n - 1:
            last = [[trace.comp(r, after=last[r])] for r in range(n)]
    return trace, SHARE * n


def doubling_reduce(n, comps=True):
    """All-Reduce by recursive doubling: everybody exchanges whole buffers."""
    trace = TraceWriter(n)
    sums = [[] for _ in range(n)]
    step = 1
    while step < n:
        got = {r: trace.message(r ^ step, r, SHARE, after=sums[r ^ step]) for r in range(n)}
        for r in range(n):
            sums[r] = [trace.comp(r, after=[got[r], *sums[r]])] if comps else [*sums[r], got[r]]
        step *= 2
    return trace, SHARE


def one_shot_reduce(n, comps=True):
    """All-Reduce in one step: everybody sends its whole buffer to everybody."""
    trace = TraceWriter(n)
    for r in range(n):
        last = []
        for s in range(n):
            if s != r:
                node = trace.message(s, r, SHARE)
                if comps:
                    last = [trace.comp(r, after=[node, *last])]
    return trace, SHARE


def two_shot_reduce(n, comps=True):
    """All-Reduce in two steps: shares to their owners, sums to everybody."""
    trace = TraceWriter(n)
    for r in range(n):
        sums = []
        for s in range(n):
            if s != r:
                node = trace.message(s, r, SHARE)
                sums = [trace.comp(r, after=[node, *sums])] if comps else [*sums, node]
        for s in range(n):
            if s != r:
                trace.message(r, s, SHARE, after=sums)
    return trace, SHARE * n


def halving_doubling_reduce(n, comps=True):
    """All-Reduce by recursive halving, then doubling (Rabenseifner)."""
    trace, size = halving_scatter(n, comps)
    # The last node that every rank computed, or all that it received.
    got = [
        [len(nodes) - 1] if comps else [i for i, node in enumerate(nodes) if node[0] == 6]
        for nodes in trace.nodes
    ]
    step = 1
    while step < n:
        new = {r: trace.message(r ^ step, r, SHARE * step, after=got[r ^ step]) for r in range(n)}
        if step == 1 and not comps:
            got = [[] for _ in range(n)]
        for r in range(n):
            got[r] = [*got[r], new[r]]
        step *= 2
    return trace, size


def tree_reduce(n, comps=True):
    """All-Reduce up a binary tree and down again, the whole buffer at once."""
    trace = TraceWriter(n)
    sums = [[] for _ in range(n)]
    for r in range(n - 1, 0, -1):
        up = (r - 1) // 2
        node = trace.message(r, up, SHARE, after=sums[r])
        sums[up] = [trace.comp(up, after=[node, *sums[up]])] if comps else [*sums[up], node]
    for r in range(1, n):
        sums[r] = [trace.message((r - 1) // 2, r, SHARE, after=sums[(r - 1) // 2])]
    return trace, SHARE


def tree_broadcast(n, pieces=2):
    """Broadcast down a binary tree, in pieces."""
    trace = TraceWriter(n)
    for _ in range(pieces):
        got = [[] for _ in range(n)]
        for r in range(1, n):
            got[r] = [trace.message((r - 1) // 2, r, SHARE, after=got[(r - 1) // 2])]
    return trace, SHARE * pieces


def tree_sum(n, comps=True):
    """Reduce up a binary tree."""
    trace = TraceWriter(n)
    sums = [[] for _ in range(n)]
    for r in range(n - 1, 0, -1):
        up = (r - 1) // 2
        node = trace.message(r, up, SHARE, after=sums[r])
        sums[up] = [trace.comp(up, after=[node, *sums[up]])] if comps else [*sums[up], node]
    return trace, SHARE


def binomial_gather(n):
    """Gather up a binomial tree: messages grow."""
    trace = TraceWriter(n)
    got = [[] for _ in range(n)]
    step = 1
    while step < n:
        for r in range(step, n, 2 * step):
            size = SHARE * min(step, n - r)
            got[r - step].append(trace.message(r, r - step, size, after=got[r]))
        step *= 2
    return trace, SHARE * n


def binomial_scatter(n):
    """Scatter down a binomial tree: messages shrink."""
    trace = TraceWriter(n)
    got = [[] for _ in range(n)]
    step = 1 << (n - 1).bit_length() - 1
    while step:
        for r in range(0, n - step, 2 * step):
            size = SHARE * min(step, n - r - step)
            got[r + step].append(trace.message(r, r + step, size, after=got[r]))
        step //= 2
    return trace, SHARE * n


def direct_exchange(n, pieces=1):
    """All-to-All, everybody to everybody."""
    trace = TraceWriter(n)
    for shift in range(1, n):
        for r in range(n):
            for _ in range(pieces):
                trace.message(r, (r + shift) % n, SHARE // pieces)
    return trace, SHARE * n


def ring_exchange(n):
    """All-to-All in a ring, every chunk passed on by all between."""
    trace = TraceWriter(n)
    for r in range(n):
        for hops in range(1, n):
            after = []
            for hop in range(hops):
                after = [trace.message((r + hop) % n, (r + hop + 1) % n, SHARE, after=after)]
    return trace, SHARE * n


def grouped_exchange(boxes, each):
    """All-to-All in two steps: within boxes by place in the box, then between boxes."""
    trace = TraceWriter(boxes * each)
    got = [[] for _ in range(boxes * each)]
    for box in range(boxes):
        for a in range(each):
            for b in range(each):
                if a != b:
                    to = box * each + b
                    got[to].append(trace.message(box * each + a, to, SHARE * boxes))
    for here in range(boxes):
        for there in range(boxes):
            if here != there:
                for a in range(each):
                    at = here * each + a
                    trace.message(at, there * each + a, SHARE * each, after=got[at])
    return trace, SHARE * boxes * each


def bruck_exchange(n):
    """All-to-All by Bruck, for powers of two: in step i what must go on by 2^i places."""
    trace = TraceWriter(n)
    got = [[] for _ in range(n)]
    step = 1
    while step < n:
        new = {
            (r + step) % n: trace.message(r, (r + step) % n, SHARE * n // 2, after=got[r])
            for r in range(n)
        }
        for r in range(n):
            got[r] = [*got[r], new[r]]
        step *= 2
    return trace, SHARE * n


def chained_broadcast(n):
    """Broadcast down a tree, in which each COMM_SEND waits only for the one before it."""
    trace = TraceWriter(n)
    last = [[] for _ in range(n)]
    for r in range(1, n):
        up = (r - 1) // 2
        node = trace.message(up, r, SHARE, after=last[up])
        last[up] = [len(trace.nodes[up]) - 1]
        last[r] = [node]
    return trace, SHARE


def barrier_gather(n):
    """All-Gather both ways round a ring, each step after all of the last."""
    trace = TraceWriter(n)
    last = [[] for _ in range(n)]
    for hop in range(n // 2):
        new = [[] for _ in range(n)]
        for step in (1, -1) if hop < n - 1 - n // 2 else (1,):
            for r in range(n):
                to = (r + step) % n
                new[to].append(trace.message(r, to, SHARE, after=last[r]))
        last = new
    return trace, SHARE * n
