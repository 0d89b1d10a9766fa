"""Types of the compiled core. Times are picoseconds, sizes bytes, rates bytes per second."""

import numpy as np
from numpy.typing import NDArray

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

class CostModel:
    def __init__(self, blocking: bool, store_and_forward: bool) -> None: ...

class Network:
    def __init__(
        self,
        npus: int,
        switches: int,
        src: Int32,
        dst: Int32,
        bandwidth: Int64,
        latency: Int64,
    ) -> None: ...

def distances(network: Network, source: int, reverse: bool) -> Int32: ...
def longest_path(
    network: Network, sources: Int32, targets: Int32, budget: int
) -> tuple[int, int]: ...
