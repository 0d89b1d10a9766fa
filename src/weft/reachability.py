"""Why a chunk cannot get to where it must go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.collective import Chunks, Collective
from weft.errors import UnreachableError
from weft.topology.model import Topology
from weft.units import NEVER


def unreachable(topology: Topology, chunks: Chunks) -> UnreachableError:
    """Name the first chunk, or part of a sum, that has no way to one of its takers."""
    ends = np.stack([chunks.pre, chunks.post, chunks.reach], axis=1)
    for chunk in np.sort(np.unique(ends, axis=0, return_index=True)[1]):
        holders = chunks.members(int(chunks.pre[chunk]))
        takers = chunks.members(int(chunks.post[chunk]))
        network, why = topology, "no path of links leads there"
        if chunks.reach[chunk] >= 0:
            allowed = chunks.members(int(chunks.reach[chunk]))
            network = topology.without(npus=np.setdiff1d(topology.members, allowed))
            why += f" through its group of {len(allowed)} NPUs, and relaying outside is forbidden"
        pairs: Iterable[tuple[np.int32 | None, np.int32 | None]]
        if chunks.reduce[chunk]:  # what every holder has must get to every taker
            pairs = ((_lonely(network, npu[None], holders, reverse=True), npu) for npu in takers)
        else:
            pairs = [(holders[0], _lonely(network, holders, takers, reverse=False))]
        for source, target in pairs:
            if source is not None and target is not None:
                return UnreachableError(
                    f"{topology.name}: chunk {chunk} cannot get from NPU {source} to NPU {target}: "
                    f"{why}"
                )
    room = min(topology.buffers.values(), default=NEVER)
    return UnreachableError(
        f"{topology.name}: chunks of {chunks.largest} B do not fit the buffers of the "
        f"switches on their way (from {room} B), which forward whole chunks only; use more chunks "
        "or cut-through"
    )


def check_first_chunk(topology: Topology, demand: Collective) -> None:
    """Raise if not even the first chunk has a way: found at once, where planning takes long."""
    # A table of all chunks may be large, and some plans do without.
    chunks = replace(demand, chunks_per_share=1).chunks
    if not len(chunks) or chunks.reach[0] >= 0:
        return
    sums = bool(chunks.reduce[0])
    near, far = (chunks.members(int(number[0])) for number in (chunks.pre, chunks.post))
    if sums:
        near, far = far[:1], near
    if len(near) == 1 and _lonely(topology, near, far, reverse=sums) is not None:
        raise unreachable(topology, chunks)


def _lonely(
    topology: Topology, near: NDArray[np.int32], far: NDArray[np.int32], *, reverse: bool
) -> np.int32 | None:
    """The first of `far` without a path from any of `near`, or to any of them if `reverse`."""
    found = [_core.distances(topology.core, int(npu), reverse)[far] >= 0 for npu in near]
    missed: NDArray[np.int32] = far[~np.any(found, axis=0)]
    return missed[0] if len(missed) else None
