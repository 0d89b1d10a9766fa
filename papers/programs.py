"""Ring and all-pairs algorithms written in Weft's language, as MSCCLang's examples are."""

from __future__ import annotations

from weft.language import Program, program


def ring_all_gather(ranks: int, size: int) -> Program:
    """Every share goes once around."""
    with program("all-gather", size, ranks=ranks, in_place=True) as p:
        for share in range(ranks):
            at = p.chunk(share, "output", share)
            for hop in range(1, ranks):
                at = at.copy((share + hop) % ranks)
    return p


def ring_all_reduce(ranks: int, size: int) -> Program:
    """Every share goes once around to be summed up, and around again to be handed out."""
    with program("all-reduce", size, ranks=ranks, in_place=True) as p:
        for share in range(ranks):
            at = p.chunk(share, "input", share)
            for hop in range(1, ranks):
                at = p.chunk((share + hop) % ranks, "input", share).reduce(at)
            for hop in range(ranks, 2 * ranks - 1):
                at = at.copy((share + hop) % ranks)
    return p


def ring_all_to_all(ranks: int, size: int) -> Program:
    """Every chunk goes on from neighbour to neighbour until it is there."""
    with program("all-to-all", size, ranks=ranks) as p:
        for rank in range(ranks):
            p.chunk(rank, "input", rank).copy(rank, "output", rank)
            for distance in range(1, ranks):
                at = p.chunk(rank, "input", (rank + distance) % ranks)
                for hop in range(1, distance):
                    # a slot for each of the chunks that pass through, by how far they go
                    at = at.copy((rank + hop) % ranks, "scratch", distance * ranks + hop)
                at.copy((rank + distance) % ranks, "output", rank)
    return p


def direct_all_gather(ranks: int, size: int) -> Program:
    """Every rank sends its share to every other, the next one first."""
    with program("all-gather", size, ranks=ranks, in_place=True) as p:
        for distance in range(1, ranks):
            for rank in range(ranks):
                p.chunk(rank, "output", rank).copy((rank + distance) % ranks)
    return p


def direct_all_reduce(ranks: int, size: int) -> Program:
    """Every rank sums up one share from all others, and sends the sum to all others."""
    with program("all-reduce", size, ranks=ranks, in_place=True) as p:
        for distance in range(1, ranks):
            for rank in range(ranks):
                taker = (rank + distance) % ranks
                p.chunk(taker, "input", taker).reduce(p.chunk(rank, "input", taker))
        for distance in range(1, ranks):
            for rank in range(ranks):
                p.chunk(rank, "input", rank).copy((rank + distance) % ranks)
    return p


def direct_all_to_all(ranks: int, size: int) -> Program:
    """Every rank sends to every other, the next one first."""
    with program("all-to-all", size, ranks=ranks) as p:
        for distance in range(ranks):
            for rank in range(ranks):
                p.chunk(rank, "input", (rank + distance) % ranks).copy(
                    (rank + distance) % ranks, "output", rank
                )
    return p


PROGRAMS = {
    "ring All-Gather": ring_all_gather,
    "ring All-Reduce": ring_all_reduce,
    "ring All-to-All": ring_all_to_all,
    "direct All-Gather": direct_all_gather,
    "direct All-Reduce": direct_all_reduce,
    "direct All-to-All": direct_all_to_all,
}
