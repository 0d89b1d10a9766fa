"""Types of the compiled core. Times are picoseconds, sizes bytes, rates bytes per second."""

from enum import Enum

import numpy as np
from numpy.typing import NDArray

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Float = NDArray[np.float64]
Bool = NDArray[np.bool_]

# chunk, src, dst, reduce, route, start, end, route offsets, route links, time
Schedule = tuple[Int32, Int32, Int32, NDArray[np.uint8], Int32, Int64, Int64, Int64, Int32, int]

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
        buffer: Int64,  # of each switch, or nothing if none is limited
        copies: NDArray[np.uint8],  # of each switch, or nothing if none copies
    ) -> None: ...

class Cancelled(Exception): ...  # noqa: N818

def prepare_thread() -> None:
    """Take what the first exception of this thread needs, while there is memory for it."""

class Progress:
    """How far a long kernel is; may be asked and cancelled from another thread."""

    def cancel(self) -> None: ...
    def enter(self, phase: str) -> None:
        """Say what comes next, such as "verifying"; this and the others may raise Cancelled."""
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

def match(
    network: Network,
    cost: CostModel,
    bytes: int,  # noqa: A002
    holder_offsets: Int64,
    holders: Int32,
    takers: Int32,
    reach: Int32,
    set_offsets: Int64,
    set_members: Int32,
    seed: int,
    bound: int,
    threads: int,
    progress: Progress,
) -> Schedule: ...
def run_rounds(
    network: Network,
    period: Int32,  # of each link, in rounds
    lag: Int32,
    owner: Int32,  # of each chunk
    seed: int,
    threads: int,
    file: int,  # an open file to write the log into
    at: int,  # from this byte on
    progress: Progress,
) -> tuple[Int64, int, bool]:
    """Offsets of the rounds, how many entries there are, and whether all got everything.

    Raises OSError if the log cannot be written.
    """

class LogChanged(Exception): ...  # noqa: N818

class LogBytes:
    """The bytes of a log of rounds; whoever makes one keeps the array or the file."""

    @staticmethod
    def in_memory(log: NDArray[np.uint8]) -> LogBytes: ...
    @staticmethod
    def in_file(file: int, at: int, length: int) -> LogBytes: ...

def round_entries(
    log: LogBytes,
    offsets: Int64,
    links: int,
    wide: bool,
    count: int,  # to expect
    some: Int32 | None,  # only of these links, in ascending order; None for all
) -> tuple[Int32, Int32, Int32, int]: ...  # round, link, chunk, damaged round or -1
def unicast(
    network: Network,
    cost: CostModel,
    bytes: Int64,  # noqa: A002
    src: Int32,
    dst: Int32,
    reach: Int32,
    set_offsets: Int64,
    set_members: Int32,
    seed: int,
    bound: int,
    threads: int,
    progress: Progress,
) -> Schedule: ...
def trees(
    network: Network,
    cost: CostModel,
    bytes: int,  # noqa: A002
    members: Int32,
    reach: Int32,
    root: int,
    chunks: int,
    seed: int,
    bound: int,
    progress: Progress,
) -> Schedule: ...
def steiner(
    network: Network,
    cost: CostModel,
    bytes: Int64,  # noqa: A002
    reduce: Bool,
    pre: Int32,
    post: Int32,
    reach: Int32,
    set_offsets: Int64,
    set_members: Int32,
    seed: int,
    bound: int,
    threads: int,
    progress: Progress,
) -> Schedule: ...
def retime(
    network: Network,
    route_offsets: Int64,
    route_links: Int32,
    cost: CostModel,
    chunk: Int32,
    src: Int32,
    dst: Int32,
    route: Int32,
    start: Int64,
    chunk_bytes: Int64,
) -> tuple[Int64, Int64]: ...
def tighten(
    network: Network,
    route_offsets: Int64,
    route_links: Int32,
    cost: CostModel,
    chunk: Int32,
    src: Int32,
    dst: Int32,
    route: Int32,
    start: Int64,
    end: Int64,
    chunks: int,
    bytes: int,  # noqa: A002
) -> tuple[Int32, Int64, Int64]: ...  # order, start, end
def forward(
    network: Network,
    cost: CostModel,
    src: Int32,
    dst: Int32,
    reach: Int32,
    largest: int,
    set_offsets: Int64,
    set_members: Int32,
) -> tuple[Int64, Int32, Int32, Int32, Int64, Int32, int]: ...

# hop offsets, src, dst, route, route offsets, route links, first message without a path
def nearest(
    network: Network,
    cost: CostModel,
    holders: Int32,
    taker: Int32,
    reach: Int32,
    largest: int,
    set_offsets: Int64,
    set_members: Int32,
) -> Int32: ...
def plan_periodic(
    network: Network,
    members: Int32,
    lag: int,
    chunks: int,
    seed: int,
    threads: int,
    progress: Progress,
) -> tuple[int, Int64, Int32, Int64, NDArray[np.uint8], Int64]: ...

class Directions:
    """The hops out of each NPU of a grid that translates onto itself, and what they occupy."""

    def __init__(
        self,
        sizes: Int32,
        dimension: Int32,
        step: Int32,
        resource: Int32,
        hold: Int64,
        duration: Int64,
    ) -> None: ...

SymmetricPlan = tuple[Int32, Int32, Int32, Int64]  # chunk, src, direction, start

def symmetric_spread(
    directions: Directions, pieces: int, seed: int, goal: int, progress: Progress
) -> SymmetricPlan: ...
def symmetric_exchange(
    directions: Directions, pieces: int, seed: int, goal: int, progress: Progress
) -> SymmetricPlan: ...
def follow_order(
    directions: Directions, pieces: int, chunk: Int32, src: Int32, direction: Int32
) -> Int64: ...
def complete(
    network: Network,
    offsets: Int64,
    chunks: Int32,
    hold: Int64,
    duration: Int64,
    begin: int,
    progress: Progress,
) -> tuple[Int32, Int32, Int64]: ...  # chunk, link, start
def hop_times(
    cost: CostModel,
    bandwidth: Int64,
    latency: Int64,
    offsets: Int64,
    bytes: int,  # noqa: A002
) -> tuple[Int64, Int64, Int64]: ...  # duration of each hop; of each link when and how long held
def grow_trees(
    network: Network,
    cost: CostModel,
    largest: int,
    roots: Int32,
    group: Int32,
    reach: int,
    set_offsets: Int64,
    set_members: Int32,
) -> tuple[Int32, Int32, Int32, Int32, int]: ...  # tree, src, dst, slot, first tree cut off

class Simulation:
    """Rows of an algorithm on a network, with what they wait for."""

    def __init__(
        self,
        *,
        network: Network,
        cost: CostModel,
        route_offsets: Int64,
        route_links: Int32,
        chunk: Int32,
        src: Int32,
        dst: Int32,
        reduce: NDArray[np.uint8],
        route: Int32,
        src_place: Int32,
        dst_place: Int32,
        dep_offsets: Int64,
        deps: Int64,
        bytes: Int64,  # noqa: A002
        summed: NDArray[np.uint8],
        chained: NDArray[np.uint8],
        planned_end: Int64,
        reducer: int,
    ) -> None: ...
    def first_come(self) -> tuple[Int64, Int64, Int64]: ...  # start, end; busy, by link
    def as_planned(self, start: Int64) -> tuple[Int64, Int64, Int64]: ...
    def critical_path(self, start: Int64, end: Int64) -> tuple[Int32, NDArray[np.uint8], Int32]: ...
    def occupied(self, start: Int64) -> tuple[Int64, Int64, Int64]: ...  # duration; begin, length

def serialization(bytes: int, bandwidth: Int64) -> Int64: ...  # noqa: A002
def time_for_chunks(
    opens: Int64,
    first: Int64,
    gap: Int64,
    overhead: Int64,
    bandwidth: Int64,
    chunks: int,
    bytes: float,  # noqa: A002
    largest: int,
) -> int: ...
def time_for_bytes(
    opens: Int64,
    first: Int64,
    bandwidth: Int64,
    bytes: float,  # noqa: A002
) -> int: ...
def time_for_weight(
    opens: Int64, first: Int64, gap: Int64, weight: Int64, needed: float
) -> int: ...
def leads(network: Network, cost: CostModel) -> tuple[Int64, Int64]: ...  # once, across
def soonest(
    network: Network,
    cost: CostModel,
    bytes: int,  # noqa: A002
    source: int,
    backwards: bool,
) -> Int64: ...
def node_bound(
    network: Network,
    cost: CostModel,
    smallest: int,
    largest: int,
    pre: Int32,
    post: Int32,
    reduce: Bool,
    count: Int64,
    total_bytes: Int64,
    set_offsets: Int64,
    set_members: Int32,
    enough: int,
    budget: int,
) -> tuple[int, int, int]: ...  # for whole chunks, for any chunking, kind
def tightest_cut(
    network: Network, supply: Float, sinks: Int32, seconds: float, budget: int
) -> tuple[float, Int32]: ...
def shortest_routing(
    network: Network, lengths: Int64, offsets: Int64, dst: Int32, amount: Int64, threads: int
) -> tuple[float, Float]: ...  # sum of amount times distance, load of each link
def balance(
    network: Network,
    capacity: Float,
    offsets: Int64,
    dst: Int32,
    amount: Int64,
    enough: float,
    budget: int,
    threads: int,
) -> tuple[Int64, Float]: ...  # lengths, seconds of each link
def distances(network: Network, source: int, reverse: bool) -> Int32: ...
def longest_path(
    network: Network, sources: Int32, targets: Int32, budget: int
) -> tuple[int, int]: ...

class ViolationCode(Enum):
    demand_npu = ...
    chunk_range = ...
    npu_range = ...
    npu_removed = ...
    out_of_reach = ...
    place_range = ...
    not_reduction = ...
    dep_range = ...
    dep_offsets = ...
    routes_broken = ...
    route_range = ...
    route_broken = ...
    route_ends = ...
    buffer_full = ...
    negative_start = ...
    duration = ...
    dep_late = ...
    link_taken = ...
    never_held = ...
    held_late = ...
    wrong_chunk = ...
    mixed = ...
    never_received = ...
    wrong_at_end = ...
    missing = ...
    twice = ...
    too_large = ...

class Violation:
    """What the judge found; ``cpp/judge/judge.h`` says what the numbers mean for each code."""

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

def judge(
    *,
    npus: int,
    chunk: Int32,
    src: Int32,
    dst: Int32,
    reduce: Bool,
    route: Int32 | None,
    start: Int64 | None,
    end: Int64 | None,
    src_place: Int32 | None,
    dst_place: Int32 | None,
    dep_offsets: Int64 | None,
    deps: Int64 | None,
    sizes: Int64,
    pre: Int32,
    post: Int32,
    reach: Int32,
    reduction: Bool,
    set_offsets: Int64,
    set_members: Int32,
    network: Network | None,
    cost: CostModel | None,
    route_offsets: Int64 | None,
    route_links: Int32 | None,
    removed: Bool,
) -> Violation | None: ...

class RoundCode(Enum):
    offsets = ...
    length = ...
    beyond = ...
    count = ...
    no_twin = ...
    chunk_range = ...
    link_taken = ...
    never_held = ...
    held_late = ...
    owner_sends = ...
    sent_twice = ...
    lost = ...
    sent_early = ...
    never_received = ...
    never_sent = ...

class RoundViolation:
    """What the judge found in a log of rounds; -1 where a field means nothing."""

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

def judge_rounds(
    *,
    network: Network,
    cost: CostModel,
    sums: bool,
    spreads: bool,
    slot: int,
    count: int,
    log: LogBytes,
    offsets: Int64,
    bytes: Int64,  # noqa: A002
    owner: Int32,  # of each chunk; -1: whoever sends it first
    present: NDArray[np.uint8],
    twinned: NDArray[np.uint8],
    progress: Progress,
) -> RoundViolation | None: ...

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
        present: NDArray[np.uint16],
        comm_src: Int64 | None = None,
        comm_dst: Int64 | None = None,
        comm_size: Int64 | None = None,
        comm_tag: Int64 | None = None,
        msg_chunk_cnt: Int64 | None = None,
        msg_chunk_idx: Int64 | None = None,
        total_chunk_cnt: Int64 | None = None,
        comm_type: Int64 | None = None,
        is_cpu_op: Int64 | None = None,
        names: list[str] = ...,
        groups: list[str] = ...,
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
    def present(self) -> NDArray[np.uint16]: ...
    @property
    def comm_src(self) -> Int64: ...
    @property
    def comm_dst(self) -> Int64: ...
    @property
    def comm_size(self) -> Int64: ...
    @property
    def comm_tag(self) -> Int64: ...
    @property
    def msg_chunk_cnt(self) -> Int64: ...
    @property
    def msg_chunk_idx(self) -> Int64: ...
    @property
    def total_chunk_cnt(self) -> Int64: ...
    @property
    def comm_type(self) -> Int64: ...
    @property
    def is_cpu_op(self) -> Int64: ...
    @property
    def names(self) -> list[bytes]: ...
    @property
    def groups(self) -> list[bytes]:
        """The pg_name of each node, empty where it has none; an empty list if none has."""
    def check(self) -> None: ...
    def digest(self) -> int:
        """The same for nodes with equal ids (0 to n - 1), types and waits, in any order."""
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
        *,
        gate: Bool | None = None,
        after: Int32 | None = None,
        delay: Int32 | None = None,
        piece_count: Int32 | None = None,
        piece_index: Int32 | None = None,
        pieces: int = 0,
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

class Fault(Enum):
    nothing = 0
    cycle = 1
    empty = 2
    race = 3
    tangled = 4

class Woven:
    """A program as rows, or what is wrong with it."""

    @property
    def fault(self) -> Fault: ...
    @property
    def fault_events(self) -> list[int]: ...
    @property
    def fault_cell(self) -> int: ...
    def columns(self) -> dict[str, NDArray[np.generic]]:
        """Move the columns out; can be called once."""

def weave(
    events: int,
    src: Int32,
    dst: Int32,
    reduce: Bool,
    chain_offsets: Int64,
    chain_events: Int64,
    edge_from: Int64,
    edge_to: Int64,
    wished: Bool,
    npu: Int32,
    place: Int32,
    chunk: Int32,
    result: Int32,
    result_place: Int32,
) -> Woven: ...

class TraceDirection(Enum):
    spread = 0
    collect = 1
    collect_and_spread = 2

class TraceFault(Enum):
    none = 0
    mixed_source = 1
    mixed_use = 2
    unlike = 3
    too_many = 4

class TraceFlow:
    """What messages carry, or at which node that cannot be said."""

    @property
    def fault(self) -> TraceFault: ...
    @property
    def node(self) -> int: ...
    @property
    def found(self) -> int: ...
    def take(
        self,
    ) -> tuple[Int64, Int32, Int32, Int64, Int32, NDArray[np.uint8], NDArray[np.uint64]]:
        """Move out what was found; can be called once.

        Parts by message (offsets, numbers), their NPUs and bytes, the part of each node that
        computes, which messages are complete, and their contributors.
        """

class TraceGraph:
    """The nodes of all ranks and the messages between them."""

    def __init__(
        self,
        *,
        npu: Int32,
        offsets: Int64,
        waits: Int64,
        carries: Bool,
        message: Int64,
        send: Int64,
        recv: Int64,
        bytes: Int64,  # noqa: A002
    ) -> None: ...
    @property
    def stuck(self) -> int:
        """A node that waits for itself over others, or -1."""
    def levels(self) -> Int32: ...
    def follow(
        self, rank: Int32, ranks: int, direction: TraceDirection, parts: bool
    ) -> TraceFlow: ...

class RunRules(Enum):
    weft = 0
    custom = 1
    plain = 2

class RankNodes:
    """One rank's nodes, packed for a run."""

    def __len__(self) -> int: ...
    @property
    def collective(self) -> int | None:
        """The id of a COMM_COLL, if there is one."""

def read_rank(file: bytes, rank: int, ranks: int, rules: RunRules) -> RankNodes: ...

class RunGraph:
    """The nodes of all ranks, in order of rank, then of id."""

    def __init__(self, parts: list[RankNodes]) -> None:
        """Take the nodes out of the parts, which are empty then."""
    def __len__(self) -> int: ...
    @property
    def ranks(self) -> int: ...
    @property
    def firsts(self) -> NDArray[np.uint32]: ...
    def ids(self) -> UInt64: ...
    @property
    def kind(self) -> NDArray[np.uint8]: ...
    def rank(self, node: int) -> int: ...
    def id(self, node: int) -> int: ...
    def message(self, node: int) -> tuple[int, int, int, int]:
        """Source, destination, tag and bytes."""

class AstraShape(Enum):
    ring = 0
    fully_connected = 1
    switched = 2

class AstraDimension:
    def __init__(self, shape: AstraShape, size: int, bandwidth: float, latency: float) -> None: ...

class TraceRun:
    """When nodes and ranks started and ended, in picoseconds; -1 for never."""

    @property
    def start(self) -> Int64: ...
    @property
    def end(self) -> Int64: ...
    @property
    def finish(self) -> Int64: ...
    @property
    def links(self) -> tuple[Int32, Int32, Int64]: ...
    @property
    def stuck(self) -> list[tuple[int, int | None]]: ...
    def alone(self, node: int) -> int: ...
    def critical_chain(self) -> NDArray[np.uint32]: ...

orders_as_astra_sim: bool
"""Whether ties go as in ASTRA-sim: if the core was built with libstdc++."""

def run_astra_traces(
    graph: RunGraph, plain: bool, aware: bool, npus: Int32, dimensions: list[AstraDimension]
) -> TraceRun: ...
def run_traces(graph: RunGraph, network: Network, cost: CostModel, npus: Int32) -> TraceRun: ...

class TraceFrames:
    """The collectives of a workload's trace; columns in the order in which they are issued."""

    @property
    def id(self) -> UInt64: ...
    @property
    def begin(self) -> Int64: ...
    @property
    def end(self) -> Int64: ...
    @property
    def kind(self) -> Int64: ...
    @property
    def size(self) -> Int64: ...
    @property
    def group(self) -> Int32: ...
    @property
    def tags(self) -> Int64: ...
    @property
    def group_names(self) -> list[bytes]: ...
    @property
    def group_inputs(self) -> list[bytes]: ...
    @property
    def nodes(self) -> int: ...
    @property
    def last_id(self) -> int: ...

def read_frames(file: bytes) -> TraceFrames: ...

class TraceShare:
    def ids(self, member: bool) -> int: ...
    def __len__(self) -> int: ...
    def write(self, first_id: int, first_tag: int, frame: bytes) -> bytes: ...

class TraceSplicer:
    def __init__(
        self,
        ranks: int,
        chunk: Int32,
        src: Int32,
        dst: Int32,
        reduce: Bool,
        src_place: Int32,
        dst_place: Int32,
        dep_offsets: Int64,
        deps: Int64,
        tag: Int32,
        chunk_bytes: Int64,
        chunk_reduce: Bool,
        pre: Int32,
        post: Int32,
        set_offsets: Int64,
        set_members: Int32,
    ) -> None: ...
    def share(self, rank: int) -> TraceShare: ...
