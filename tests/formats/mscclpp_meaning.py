"""What a plan for a collective must do, in the words of the checker of plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from mscclpp_checker import Contribution, Expected
from mscclpp_shape import Place

from weft.collective import Collective


def meaning(collective: Collective, ranks: list[int]) -> tuple[Expected, dict[Place, Contribution]]:
    """For each output chunk of each rank, the input chunks it is the sum of; and which are copies.

    `ranks` are the NPUs by rank. Chunks of many sizes are so many chunks of the largest size that
    divides all.
    """
    chunks = collective.chunks
    even = collective.parts is None or collective.pattern.any_cut
    sizes = np.ones_like(chunks.bytes) if even else chunks.bytes
    units = (sizes // np.gcd.reduce(sizes)).tolist()
    begin: dict[str, dict[tuple[int, int], int]] = {"pre": {}, "post": {}}
    length: Counter[tuple[str, int]] = Counter()
    for chunk in range(len(chunks)):
        for side, number in (("pre", chunks.pre[chunk]), ("post", chunks.post[chunk])):
            for npu in chunks.members(number).tolist():
                begin[side][chunk, npu] = length[side, npu]
                length[side, npu] += units[chunk]
    expected: Expected = {}
    names: dict[Place, Contribution] = {}
    for (chunk, npu), start in begin["post"].items():
        sources = chunks.members(chunks.pre[chunk]).tolist()
        for unit in range(units[chunk]):
            parts = [(ranks.index(s), begin["pre"][chunk, s] + unit) for s in sources]
            if not chunks.reduce[chunk]:
                names.update({(rank, "i", slot): parts[0] for rank, slot in parts})
                parts = parts[:1]
            expected[ranks.index(npu), "o", start + unit] = Counter(parts)
    return expected, names


def aliases(collective: Collective, *, in_place: bool) -> Callable[[Place], Place]:
    """In place, input and output are one buffer, or one is a part of the other."""
    pieces = collective.chunks_per_share
    root = None if collective.root is None else collective.group.index(collective.root)

    def alias(place: Place) -> Place:
        rank, buffer, slot = place
        if not in_place or buffer == "s" or rank >= collective.ranks:
            return place
        if collective.kind in ("all-gather", "gather"):
            mine = collective.kind == "all-gather" or rank == root
            return (rank, "o", rank * pieces + slot) if buffer == "i" and mine else place
        if collective.kind in ("reduce-scatter", "scatter"):
            mine = collective.kind == "reduce-scatter" or rank == root
            return (rank, "i", rank * pieces + slot) if buffer == "o" and mine else place
        return rank, "i", slot

    return alias
