"""Twisted tori: a torus of n x n x 2n or n x 2n x 2n whose short rings go on n places further.

Whoever leaves the end of a short dimension comes in again at its beginning, n places on along
every long dimension: for n x n x 2n each of the two short dimensions shifts along the long one,
for n x 2n x 2n the short one shifts along both long ones. These are the prismatic doubly twisted
torus and its like of Cámara et al., *Twisted Torus Topologies for Enhanced Interconnection
Networks* (IEEE TPDS, 2010), to which Jouppi et al., *TPU v4* (ISCA 2023), refer; as graphs the
cubic crystal lattices FCC(n) and BCC(n) of Camarero et al. (IEEE TPDS, 2015). All nodes and all
links of them are alike, and no way is longer than 3n/2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from weft.topology.dimensions import Ends


def can_twist(sizes: Sequence[int]) -> bool:
    """Whether there is a twisted torus of these sizes, in any order."""
    short, middle, long = sorted(sizes) if len(sizes) == 3 else (1, 1, 1)
    return short >= 2 and long == 2 * short and middle in (short, long)


def twisted_ends(sizes: Sequence[int]) -> list[Ends]:
    """The links of each dimension: all steps up, by source, then all steps down."""
    npus, short = math.prod(sizes), min(sizes)
    places = np.array(np.unravel_index(np.arange(npus), sizes[::-1])[::-1])
    longer = np.array(sizes) > short
    strides = np.cumprod([1, *sizes[:-1]])
    ends = []
    for dimension, size in enumerate(sizes):
        after = places.copy()
        after[dimension] += 1
        if size == short:
            after[longer] += short * (after[dimension] == size)
        after %= np.array(sizes)[:, None]
        here, there = np.arange(npus), strides @ after
        ends.append((np.concatenate([here, there]), np.concatenate([there, here])))
    return ends
