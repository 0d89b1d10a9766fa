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

UInt64 = NDArray[np.uint64]

class ChakraNodes:
    """One rank's nodes. Times are microseconds here, as the schema has them."""

    def __init__(
        self,
        *,
        id: UInt64,  # noqa: A002
        type: Int32,  # noqa: A002
        ctrl_offsets: Int64,
        ctrl: UInt64,
        data_offsets: Int64,
        data: UInt64,
        start: UInt64,
        duration: UInt64,
        present: NDArray[np.uint8],
        comm_src: Int64,
        comm_dst: Int64,
        comm_size: Int64,
        comm_tag: Int64,
        names: list[str],
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def id(self) -> UInt64: ...
    @property
    def type(self) -> Int32: ...
    @property
    def ctrl_offsets(self) -> Int64: ...
    @property
    def ctrl(self) -> UInt64: ...
    @property
    def data_offsets(self) -> Int64: ...
    @property
    def data(self) -> UInt64: ...
    @property
    def start(self) -> UInt64: ...
    @property
    def duration(self) -> UInt64: ...
    @property
    def present(self) -> NDArray[np.uint8]: ...
    @property
    def comm_src(self) -> Int64: ...
    @property
    def comm_dst(self) -> Int64: ...
    @property
    def comm_size(self) -> Int64: ...
    @property
    def comm_tag(self) -> Int64: ...
    @property
    def names(self) -> list[bytes]: ...
    def check(self) -> None: ...
    def first_difference(self, expected: ChakraNodes) -> str: ...

class ChakraPlan:
    def __init__(
        self,
        npus: int,
        chunk: Int32,
        src: Int32,
        dst: Int32,
        reduce: Bool,
        chunk_bytes: Int64,
        src_place: Int32 | None,
        dst_place: Int32 | None,
        dep_offsets: Int64 | None,
        deps: Int64 | None,
    ) -> None: ...
    def nodes(self, npu: int) -> ChakraNodes: ...
    def sent(self, npu: int) -> Int64: ...

_Value = int | float | bytes | Int64 | NDArray[np.float64] | list[bytes] | None

def write_chakra(
    version: str, attributes: list[tuple[str, int, _Value]], nodes: ChakraNodes
) -> bytes: ...
def read_chakra(
    file: bytes, names: bool = False
) -> tuple[bytes, list[tuple[bytes, int, _Value]], ChakraNodes]: ...
