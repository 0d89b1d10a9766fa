"""Before data moves, all ranks make sure that they were asked for the same."""

from __future__ import annotations

import msgspec

from weft.errors import InputError
from weft.runtime.errors import DisagreementError


class Offer(msgspec.Struct, array_like=True):
    """What a rank was asked for."""

    turn: int
    digest: bytes
    type: str  # empty where the rank cannot know
    op: str
    counts: list[int]  # -1 where it cannot know


def agreed_type(offers: list[Offer]) -> str:
    """The type that all together know; raises if two ranks have different ones."""
    known = [(offer.type, rank) for rank, offer in enumerate(offers) if offer.type]
    for kind, rank in known:
        if kind != known[0][0]:
            raise DisagreementError(
                f"rank {known[0][1]} and rank {rank} were asked for a different dtype: "
                f"{known[0][0]} and {kind}",
                peer=rank,
            )
    return known[0][0] if known else "f32"


def agreed_counts(offers: list[Offer]) -> list[int]:
    """The counts that all together know; raises if two ranks were asked for different things."""
    first = offers[0]
    counts = [-1] * len(first.counts)
    known: list[int] = [0] * len(counts)
    for other, offer in enumerate(offers):
        for name in ("turn", "digest", "op"):
            mine, theirs = getattr(first, name), getattr(offer, name)
            if mine != theirs:
                word = {"turn": "call", "digest": "plan"}.get(name, name)
                shown = "" if isinstance(mine, bytes) else f": {mine} and {theirs}"
                raise DisagreementError(
                    f"rank 0 and rank {other} were asked for a different {word}{shown}", peer=other
                )
        if len(offer.counts) != len(counts):
            raise DisagreementError(f"rank {other} was asked for something else", peer=other)
        for at, count in enumerate(offer.counts):
            if count >= 0 and counts[at] >= 0 and count != counts[at]:
                raise DisagreementError(
                    f"rank {known[at]} has buffers for {counts[at]} elements, rank {other} for "
                    f"{count}",
                    peer=other,
                )
            if count >= 0:
                counts[at], known[at] = count, other
    if -1 in counts:
        raise InputError("no rank's buffers say how many elements there are; give count")
    return counts
