"""Traces as converters of thread-block programs write them.

A node waits for the one before it in its block, whatever chunk that was of, and for the last one
that touched its chunk in another block. Tags are channels. Messages count chunks; they may have no
size.
"""

from __future__ import annotations

from itertools import permutations

from trace_writer import RECV, SEND, TraceWriter

CHUNK = 1024


def written(npus, total, rows, *, sizes=False, labels=True) -> TraceWriter:
    """A program of rows (chunk, source, destination, whether it adds)."""
    trace = TraceWriter(npus)
    last_in_block, last_of_chunk = {}, {}

    def add(rank, kind, peer, chunk, adds=False):
        known = {"comm_tag": 0, "comm_dst" if kind == SEND else "comm_src": peer}
        if sizes:
            known |= {"comm_size": CHUNK}
        if labels:
            known |= {"msg_chunk_idx": chunk, "msg_chunk_cnt": 1, "total_chunk_cnt": total}
        block = rank, kind, peer
        waits = {last_in_block.get(block), last_of_chunk.get((rank, chunk))} - {None}
        node = trace.add(rank, kind, sorted(waits), **known)
        if adds:
            node = trace.comp(rank, after=[node])
        last_in_block[block] = last_of_chunk[rank, chunk] = node

    for chunk, src, dst, adds in rows:
        add(src, SEND, dst, chunk)
        add(dst, RECV, src, chunk, adds)
    return trace


def ring_scatter(n):
    return [((r - k) % n, r, (r + 1) % n, True) for k in range(1, n) for r in range(n)]


def ring_gather(n):
    return [((r - k) % n, r, (r + 1) % n, False) for k in range(n - 1) for r in range(n)]


def boxes_reduce(per):
    """All-Reduce of two boxes: summed in each, then across, then handed out."""
    rows = []
    for box in (0, per):
        pairs = list(permutations(range(per), 2))
        rows += [(2 * b + c, box + a, box + b, True) for a, b in pairs for c in (0, 1)]
    for adds in (True, False):
        for a in range(per):
            ends = (a + per, a) if adds else (a, a + per)
            rows += [(2 * a, *ends, adds), (2 * a + 1, *ends[::-1], adds)]
    for box in (0, per):
        pairs = list(permutations(range(per), 2))
        rows += [(2 * a + c, box + a, box + b, False) for a, b in pairs for c in (0, 1)]
    return rows


def tree_broadcast(chunks):
    edges = ((0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6), (3, 7))
    return [(chunk, *edge, False) for edge in edges for chunk in range(chunks)]


PROGRAMS = {
    "all-gather": (8, 8, ring_gather(8)),
    "reduce-scatter": (8, 8, ring_scatter(8)),
    "all-reduce": (8, 8, ring_scatter(8) + ring_gather(8)),
    "all-reduce of boxes": (8, 8, boxes_reduce(4)),
    "broadcast": (8, 4, tree_broadcast(4)),
    "reduce": (8, 4, [(c, d, s, True) for c, s, d, _ in reversed(tree_broadcast(4))]),
}
