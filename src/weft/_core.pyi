from collections.abc import Sequence
import enum
from typing import Annotated, Any

import numpy
import numpy.typing
from numpy.typing import NDArray


def prepare_thread() -> None: ...

def find_automorphisms(colour: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], src: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], dst: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], kind: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], members: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], budget: int) -> tuple[bool, Annotated[NDArray[numpy.int32], dict(shape=(None,))]]: ...

class Capacity:
    """
    How soon a set of links can have carried so much: see ``cpp/bounds/capacity.h``. `gap` is `first` by default, and `overhead` is `gap`; weights are in the place of `bandwidth`.
    """

    def __init__(self, *, opens: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bandwidth: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], gap: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, overhead: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    def time_for_chunks(self, chunks: int, bytes: float, largest: int) -> int: ...

    def time_for_bytes(self, bytes: float) -> int: ...

    def time_for_weight(self, needed: float) -> int: ...

def hop_overheads(network: Network, cost: CostModel) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))]]:
    """Once, across, early and late: see ``cpp/bounds/hop_overheads.h``."""

def soonest(network: Network, cost: CostModel, bytes: int, sources: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], backwards: bool, relays: bool = True) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """A row of all nodes for each source, one after the other."""

class MessageLinks:
    def __init__(self, *, known: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], told: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rate: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], before: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], after: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], table: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

def time_for_messages(links: MessageLinks, needed: float) -> int:
    """See ``cpp/bounds/messages.h``."""

class ChunkClasses:
    def __init__(self, *, pre: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], post: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], reduce: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], count: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], smallest: int, largest: int, set_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], set_members: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

def node_bound(network: Network, cost: CostModel, classes: ChunkClasses, enough: int, budget: int) -> tuple[int, int, int, int, int]:
    """
    For whole chunks, for any chunking, the kind of the first, its NPU, and a path's other end.
    """

def tightest_cut(network: Network, supply: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sinks: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], seconds: float, budget: int) -> tuple[float, Annotated[NDArray[numpy.int32], dict(shape=(None,))]]: ...

class MoveTypes:
    """See ``cpp/planners/by_level/by_level.h``."""

    def __init__(self, *, duration: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], resource: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], same: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], other: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], turns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class Lane:
    """See ``cpp/planners/by_level/by_level.h``."""

    def __init__(self, *, size: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], scatter: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], ring: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], there: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], back: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], pieces: int, sums: bool, copies: bool, exchange: bool, types: MoveTypes) -> None: ...

def compose(lanes: Sequence[Lane], resources: int, rule: int, progress: Progress) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], int]:
    """
    Of each move: when what it sends is there, when it starts; and when the last arrives.
    """

class ChakraNodes:
    """One rank's nodes. Times are microseconds here, as the schema has them."""

    def __init__(self, *, id: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], type: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], ctrl_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ctrl: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], data_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], duration: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], present: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], comm_src: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, comm_dst: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, comm_size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, comm_tag: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, msg_chunk_cnt: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, msg_chunk_idx: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, total_chunk_cnt: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, comm_type: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, is_cpu_op: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, names: Sequence[str] = [], groups: Sequence[str] = []) -> None: ...

    @property
    def id(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,), writable=False)]: ...

    @property
    def type(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def start(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,), writable=False)]: ...

    @property
    def duration(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,), writable=False)]: ...

    @property
    def present(self) -> Annotated[NDArray[numpy.uint16], dict(shape=(None,), writable=False)]: ...

    def __len__(self) -> int: ...

    @property
    def ctrl_offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def ctrl(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,), writable=False)]: ...

    @property
    def data_offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def data(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,), writable=False)]: ...

    @property
    def names(self) -> list[bytes]: ...

    @property
    def groups(self) -> list[bytes]: ...

    def check(self) -> None: ...

    def digest(self) -> int:
        """
        The same for nodes with equal ids (0 to n - 1), types and waits, in any order.
        """

    def first_difference(self, expected: ChakraNodes) -> str: ...

    @property
    def comm_src(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def comm_dst(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def comm_size(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def comm_tag(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def msg_chunk_cnt(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def msg_chunk_idx(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def total_chunk_cnt(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def comm_type(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def is_cpu_op(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

class Pace:
    def __init__(self, *, gate: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, after: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, delay: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, piece_count: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, piece_index: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, pieces: int) -> None: ...

class ChakraPlan:
    def __init__(self, npus: int, rows: Transfers, chunk_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], pace: Pace | None = None) -> None: ...

    def nodes(self, npu: int) -> ChakraNodes: ...

    def sent(self, npu: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

def write_chakra(version: str, attributes: list[tuple[str, int, Any]], nodes: ChakraNodes) -> bytes: ...

def read_chakra(file: bytes, names: bool = False) -> tuple[bytes, list[tuple[bytes, int, Any]], ChakraNodes]: ...

def distances(network: Network, source: int, reverse: bool = False) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

def longest_path(network: Network, sources: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], targets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], budget: int) -> tuple[int, int]: ...

class Flows:
    def __init__(self, *, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], dst: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], amount: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

def shortest_routing(network: Network, lengths: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], flows: Flows, threads: int) -> tuple[float, Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
    """The sum of amount times distance, and the load of each link."""

def balance(network: Network, capacity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], flows: Flows, enough: float, budget: int, threads: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
    """The length, and the seconds, of each link."""

class Forwarded:
    """Messages cut into hops; `lost` is the first that has no path, or -1."""

    @property
    def hop_offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def src(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def dst(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def route(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def lost(self) -> int: ...

    @property
    def route_offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def route_links(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

def forward(network: Network, cost: CostModel, chunks: Chunks, src: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], dst: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], reach: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Forwarded: ...

def nearest(network: Network, cost: CostModel, chunks: Chunks, chunk: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], taker: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
    """The holder with the fewest hops to go; -1 if none has a way."""

class TraceFrames:
    """
    The collectives of a workload's trace; columns in the order in which they are issued.
    """

    @property
    def id(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,), writable=False)]: ...

    @property
    def begin(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def end(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def kind(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def size(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def group(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def tags(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def nodes(self) -> int: ...

    @property
    def last_id(self) -> int: ...

    @property
    def group_names(self) -> list[bytes]: ...

    @property
    def group_inputs(self) -> list[bytes]: ...

def read_frames(file: bytes) -> TraceFrames: ...

class TraceShare:
    def ids(self, member: bool) -> int: ...

    def __len__(self) -> int: ...

    def write(self, first_id: int, first_tag: int, frame: bytes) -> bytes: ...

class TraceSplicer:
    def __init__(self, ranks: int, rows: Transfers, chunks: Chunks, tag: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def share(self, rank: int) -> TraceShare: ...

def gateways(network: Network, cost: CostModel, chunks: Chunks, box: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], one_shot: bool, search: Search) -> tuple[Schedule, Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
    """
    The plan, and which place each row reads and writes: see ``cpp/planners/gateways/gateways.h``.
    """

class ViolationCode(enum.Enum):
    demand_npu = 0

    chunk_range = 1

    npu_range = 2

    npu_removed = 3

    out_of_reach = 4

    place_range = 5

    not_reduction = 6

    dep_range = 7

    dep_offsets = 8

    routes_broken = 9

    route_range = 10

    route_broken = 11

    route_ends = 12

    buffer_full = 13

    negative_start = 14

    duration = 15

    dep_late = 16

    link_taken = 17

    never_held = 18

    held_late = 19

    wrong_chunk = 20

    mixed = 21

    never_received = 22

    wrong_at_end = 23

    missing = 24

    twice = 25

    too_large = 26

class Violation:
    """
    What the judge found; ``cpp/judge/judge.h`` says what the numbers mean for each code.
    """

    @property
    def code(self) -> ViolationCode: ...

    @property
    def in_row_order(self) -> bool: ...

    @property
    def time(self) -> int: ...

    @property
    def row(self) -> int: ...

    @property
    def chunk(self) -> int: ...

    @property
    def npu(self) -> int: ...

    @property
    def link(self) -> int: ...

    @property
    def other(self) -> int: ...

    @property
    def detail(self) -> int: ...

def judge(*, npus: int, rows: Transfers, chunks: Chunks, timing: Timing | None, removed: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> Violation | None:
    """
    The first violation, or none. `removed`: of each NPU, or None if none is.
    """

class RoundCode(enum.Enum):
    offsets = 0

    length = 1

    beyond = 2

    count = 3

    no_reverse = 4

    chunk_range = 5

    link_taken = 6

    never_held = 7

    held_late = 8

    owner_sends = 9

    sent_twice = 10

    lost = 11

    sent_early = 12

    never_received = 13

    never_sent = 14

class RoundViolation:
    """
    What the judge found in a log of rounds; -1 where a field means nothing.
    """

    @property
    def code(self) -> RoundCode: ...

    @property
    def round(self) -> int: ...

    @property
    def link(self) -> int: ...

    @property
    def chunk(self) -> int: ...

    @property
    def npu(self) -> int: ...

    @property
    def time(self) -> int: ...

    @property
    def until(self) -> int: ...

    @property
    def other(self) -> int: ...

class RoundRecord:
    def __init__(self, log: LogBytes, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], slot: int, count: int) -> None: ...

class RoundParts:
    def __init__(self, *, bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], owner: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], present: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], has_reverse: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

def judge_rounds(network: Network, cost: CostModel, record: RoundRecord, parts: RoundParts, *, sums: bool, spreads: bool, progress: Progress) -> RoundViolation | None: ...

def match(network: Network, cost: CostModel, chunks: Chunks, search: Search) -> Schedule: ...

class GrownTrees:
    """The edges of all trees; `lost` is the first tree cut off, or -1."""

    @property
    def tree(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def src(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def dst(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def slot(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def lost(self) -> int: ...

def grow_trees(network: Network, cost: CostModel, chunks: Chunks, group: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> GrownTrees: ...

class CostModel:
    def __init__(self, blocking: bool, store_and_forward: bool) -> None: ...

class Network:
    """
    Nodes, NPUs first, and directed links. `buffer`, `copies` and `adds` are of each switch, or empty if none is limited, copies, or adds.
    """

    def __init__(self, npus: int, switches: int, src: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], dst: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], bandwidth: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], latency: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], buffer: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], copies: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], adds: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class Rows:
    def __init__(self, *, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], items: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class Chunks:
    def __init__(self, *, bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], pre: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], post: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], reduce: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], reach: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], set_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], set_members: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class Transfers:
    def __init__(self, *, chunk: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], src: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], dst: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], reduce: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], route: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, src_place: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, dst_place: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, dep_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, deps: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class Timing:
    """What the times of rows are for."""

    def __init__(self, network: Network, cost: CostModel, routes: Rows | None) -> None: ...

def serialization(bytes: int, bandwidth: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """Picoseconds in which each link pushes so many bytes."""

def hop_times(cost: CostModel, bandwidth: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], latency: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bytes: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """
    Duration of each hop; of each of its links when it is held, and how long.
    """

class PeriodicTrees:
    """
    The rows of each tree's first chunk; `period` is in slots, `chunks` how many chunks each tree carries.
    """

    @property
    def period(self) -> int: ...

    @property
    def offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def link(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def slot(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def reduce(self) -> Annotated[NDArray[numpy.bool_], dict(shape=(None,), writable=False)]: ...

    @property
    def chunks(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

def plan_periodic(network: Network, members: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lag: int, chunks: int, search: Search) -> PeriodicTrees: ...

class Fault(enum.Enum):
    nothing = 0

    cycle = 1

    empty = 2

    race = 3

    tangled = 4

class Linearized:
    """A program as rows, or what is wrong with it."""

    @property
    def fault(self) -> Fault: ...

    @property
    def fault_events(self) -> list[int]: ...

    @property
    def fault_cell(self) -> int: ...

    def columns(self) -> dict[str, numpy.typing.NDArray[Any]]:
        """Move the columns out; can be called once."""

class Program:
    def __init__(self, *, src: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], dst: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], reduce: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], events: int, chain_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], chain_events: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], edge_from: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], edge_to: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], wished: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], npu: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], place: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], chunk: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], result: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], result_place: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def linearize(self) -> Linearized: ...

class Cancelled(Exception):
    pass

class Progress:
    """
    How far a long kernel is; may be asked and cancelled from another thread.
    """

    def __init__(self) -> None: ...

    def cancel(self) -> None: ...

    def enter(self, phase: str) -> None:
        """
        Say what comes next, such as "verifying"; this and the others may raise Cancelled.
        """

    def begin(self, work: int) -> None:
        """The next stage of the phase has so much to do."""

    def advance(self) -> None:
        """So much of it is done: one more."""

    def check(self) -> None: ...

    @property
    def phase(self) -> str: ...

    @property
    def stage(self) -> int: ...

    @property
    def done(self) -> int: ...

    @property
    def total(self) -> int: ...

class Search:
    """
    How a planner searches; `goal` is a time to aim at: no plan is shorter.
    """

    def __init__(self, *, seed: int, goal: int, threads: int, progress: Progress) -> None: ...

def complete(network: Network, missing: Rows, hold: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], duration: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], begin: int, progress: Progress) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """Chunk, link and start of each row."""

def rooted(network: Network, cost: CostModel, chunks: Chunks, search: Search) -> Schedule: ...

class LogChanged(Exception):
    pass

class LogBytes:
    """The bytes of a log of rounds; whoever makes one keeps the file."""

    @staticmethod
    def in_memory(log: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> LogBytes: ...

    @staticmethod
    def in_file(file: int, at: int, length: int) -> LogBytes: ...

def run_rounds(network: Network, period: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lag: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], owner: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], search: Search, file: int, at: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], int, bool]:
    """
    Write a log into an open file; offsets of the rounds, how many entries there are, and whether all got everything. Raises OSError if it cannot be written.
    """

def round_entries(log: LogBytes, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], links: int, wide: bool, count: int, some: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], int]:
    """
    Round, link and chunk of each entry, and a damaged round or -1. `some`: only of these links, in ascending order; else of all, and `count` are expected.
    """

class Transport:
    pass

class Sockets(Transport):
    """Channels over connected sockets."""

    def __init__(self, watched: Sequence[int]) -> None: ...

    def add(self, peer: int, descriptor: int) -> None: ...

class Rings(Transport):
    """Channels through shared memory."""

    def __init__(self, memory: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], rank: int, ranks: int, ring_bytes: int, watched: Sequence[int]) -> None: ...

    @staticmethod
    def bytes(ranks: int, ring_bytes: int) -> int: ...

class Pipes(Transport):
    """Channels whose bytes the caller carries."""

    def __init__(self, ranks: int, room: int) -> None: ...

    def take(self, peer: int, into: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """Take what is to be sent; gives how many bytes."""

    def put(self, peer: int, bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """Put what came; gives how many bytes there was room for."""

def combine(type: ElementType, op: ElementOp, to: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], base: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], other: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
    """to = base op other, of bytes."""

def divide(type: ElementType, at: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], by: int) -> None:
    """Divide each element by a count."""

class RunState(enum.Enum):
    running = 0

    done = 1

    disagreeing = 2

    closed = 3

class ElementType(enum.Enum):
    f16 = 0

    bf16 = 1

    f32 = 2

    f64 = 3

    i8 = 4

    i16 = 5

    i32 = 6

    i64 = 7

    u8 = 8

    u16 = 9

    u32 = 10

    u64 = 11

class ElementOp(enum.Enum):
    sum = 0

    product = 1

    min = 2

    max = 3

class Steps:
    def __init__(self, *, what: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], peer: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], queue: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], from_buffer: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], base_buffer: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], to_buffer: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], from_: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], base: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], to: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], length: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], combines: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], read_cell: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], write_cell: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], read_after: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], written_after: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], free_after: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], after_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], after: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class Execution:
    """One rank's run of a program."""

    def __init__(self, steps: Steps, buffers: Sequence[Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]], type: ElementType, op: ElementOp, transport: Transport, key: bytes, traced: bool) -> None: ...

    def advance(self, seconds: float) -> RunState:
        """
        Work until all is done, something is wrong, there is news, or so much time is over.
        """

    @property
    def peer(self) -> int: ...

    @property
    def moved(self) -> int: ...

    @property
    def waiting(self) -> list[int]: ...

    def times(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]: ...

class Schedule:
    """
    Rows in order of start; no routes where a route is a link. `time` is when the last taker is served, or NEVER if some cannot be.
    """

    @property
    def chunk(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def src(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def dst(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def reduce(self) -> Annotated[NDArray[numpy.bool_], dict(shape=(None,), writable=False)]: ...

    @property
    def route(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def start(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def end(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def time(self) -> int: ...

    @property
    def route_offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def route_links(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

def retime(timing: Timing, rows: Transfers, chunk_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """Start and end of each row."""

def tighten(timing: Timing, rows: Transfers, bytes: int) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """In which order the rows start; start and end of each."""

class GivenHops:
    """See ``cpp/planners/shares/shares.h``."""

    def __init__(self, *, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], links: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], src: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], dst: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lane: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class GivenTrees:
    """See ``cpp/planners/shares/shares.h``."""

    def __init__(self, *, up_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], up: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], down_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], down: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], up_turn: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], down_turn: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

def shares(network: Network, cost: CostModel, chunks: Chunks, hops: GivenHops, trees: GivenTrees, search: Search) -> Schedule:
    """When chunks run that go by trees which are chosen already."""

class Simulation:
    """
    Rows of an algorithm on a network, with what they wait for. If they have times, those are planned.
    """

    def __init__(self, timing: Timing, rows: Transfers, chunks: Chunks, *, chained: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, reducer: int = 0) -> None: ...

    def first_come(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """Start and end of each row, and how long each link was held."""

    def in_order(self, earliest: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """The same, rows placed in the table's order, none sooner than it may."""

    def as_planned(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """The same, each link in the planned order."""

    def critical_path(self, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
        """Row, cause and link of each step."""

    def occupied(self, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """
        The duration of each row; of each link it crosses when it is held, and how long.
        """

def steiner(network: Network, cost: CostModel, chunks: Chunks, search: Search) -> Schedule: ...

def steady(network: Network, cost: CostModel, chunks: Chunks, search: Search) -> Schedule: ...

class Directions:
    """
    The hops out of each NPU of a grid that translates onto itself, and what they occupy.
    """

    def __init__(self, *, sizes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], dimension: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], step: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], resource: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], hold: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], duration: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

def symmetric_spread(directions: Directions, pieces: int, search: Search) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """Chunk, source, direction and start of each row."""

def symmetric_exchange(directions: Directions, pieces: int, search: Search) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """Chunk, source, direction and start of each row."""

def follow_order(directions: Directions, pieces: int, chunk: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], src: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], direction: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """When each row starts."""

class TraceDirection(enum.Enum):
    spread = 0

    collect = 1

    collect_and_spread = 2

class TraceFault(enum.Enum):
    none = 0

    mixed_source = 1

    mixed_use = 2

    unlike = 3

    too_many = 4

class TraceFlow:
    """
    What messages carry, or at which node that cannot be said. `offsets` are of the parts of each message.
    """

    @property
    def fault(self) -> TraceFault: ...

    @property
    def node(self) -> int: ...

    @property
    def found(self) -> int: ...

    @property
    def offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def parts(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def part_npu(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def part_bytes(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def node_part(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

    @property
    def complete(self) -> Annotated[NDArray[numpy.bool_], dict(shape=(None,), writable=False)]: ...

    @property
    def contributors(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,), writable=False)]: ...

class TraceGraph:
    def __init__(self, *, npu: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], waits: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], carries: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], message: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], send: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], recv: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def stuck(self) -> int: ...

    def levels(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    def follow(self, rank: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], ranks: int, direction: TraceDirection, parts: bool) -> TraceFlow: ...

class RunRules(enum.Enum):
    weft = 0

    custom = 1

    plain = 2

class RankNodes:
    def __len__(self) -> int: ...

    @property
    def collective(self) -> int | None: ...

def read_rank(file: bytes, rank: int, ranks: int, rules: RunRules) -> RankNodes: ...

class RunGraph:
    """
    The nodes of all ranks, in order of rank, then of id; taken out of the parts, which are empty then.
    """

    def __init__(self, parts: Sequence[RankNodes]) -> None: ...

    def __len__(self) -> int: ...

    @property
    def ranks(self) -> int: ...

    @property
    def firsts(self) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,), writable=False)]: ...

    def ids(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]: ...

    def rank(self, node: int) -> int: ...

    def id(self, node: int) -> int: ...

    def message(self, node: int) -> tuple[int, int, int, int]: ...

    @property
    def kind(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,), writable=False)]: ...

class AstraShape(enum.Enum):
    ring = 0

    fully_connected = 1

    switched = 2

class AstraDimension:
    def __init__(self, shape: AstraShape, size: int, bandwidth: float, latency: float) -> None: ...

class TraceRun:
    """When nodes and ranks started and ended, in picoseconds; -1 for never."""

    @property
    def start(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def end(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def finish(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]: ...

    @property
    def links(self) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]: ...

    @property
    def stuck(self) -> list[tuple[int, int | None]]: ...

    def alone(self, node: int) -> int: ...

    def critical_chain(self) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]: ...

orders_as_astra_sim: bool = True

def run_astra_traces(graph: RunGraph, plain: bool, aware: bool, npus: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], dimensions: Sequence[AstraDimension]) -> TraceRun: ...

def run_traces(graph: RunGraph, network: Network, cost: CostModel, npus: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> TraceRun: ...

def trees(network: Network, cost: CostModel, chunks: Chunks, search: Search) -> Schedule: ...

def unicast(network: Network, cost: CostModel, chunks: Chunks, search: Search) -> Schedule: ...
