"""Plans written by hand, as people write them in MSCCL++'s language."""

from __future__ import annotations

from typing import Any

Plan = dict[str, Any]


def chunks(buffer: str | int, index: int, size: int = 1) -> dict[str, Any]:
    """Chunks of an own buffer, or of one of others by its number."""
    key = "type" if isinstance(buffer, str) else "buffer_id"
    return {key: buffer, "index": index, "size": size}


def operation(name: str, *, kind: str | None = None, **fields: Any) -> dict[str, Any]:
    record: dict[str, Any] = {"name": name}
    sides = {"src": "src_buff", "dst": "dst_buff", "ids": "channel_ids", "sems": "semaphore_ids"}
    record |= {sides.get(key, key): value for key, value in fields.items()}
    return record if kind is None else record | {"channel_type": kind}


def gpu(
    rank: int,
    counts: tuple[int, int, int],
    blocks: list[list[dict[str, Any]]],
    peers: list[int],
    buffers: list[tuple[int, str]],
    *,
    kind: str = "memory",
    semaphores: int = 0,
) -> dict[str, Any]:
    """A GPU all of whose thread blocks use all of its channels and buffers."""
    refs = list(range(len(buffers)))
    return {
        "id": rank,
        "input_chunks": counts[0],
        "output_chunks": counts[1],
        "scratch_chunks": counts[2],
        "threadblocks": [
            {
                "id": number,
                "ops": ops,
                "channels": [{"channel_type": kind, "channel_ids": list(range(len(peers)))}],
                "remote_buffer_refs": [{"access_channel_type": kind, "remote_buffer_ids": refs}],
            }
            for number, ops in enumerate(blocks)
        ],
        "channels": [{"channel_type": kind, "connected_to": peers}],
        "remote_buffers": [
            {"rank": peer, "type": buffer, "access_channel_types": [kind]}
            for peer, buffer in buffers
        ],
        "semaphores": [{"init_value": 0}] * semaphores,
    }


def plan_of(
    collective: str, gpus: list[dict[str, Any]], *, inplace: bool = True, protocol: str = "Simple"
) -> dict[str, Any]:
    return {
        "name": f"handmade_{collective}",
        "collective": collective,
        "protocol": protocol,
        "inplace": inplace,
        "reuse_resources": False,
        "gpus": gpus,
        "num_threads_per_block": 1024,
        "use_double_scratch_buffer": False,
        "buffer_alignment": 16,
        "min_message_size": 0,
        "max_message_size": 2**64 - 1,
    }


def all_reduce() -> Plan:
    """Two GPUs: each reads and adds its half, then puts the sum to the other."""
    gpus = []
    for me in (0, 1):
        other = 1 - me
        half = [chunks("i", 2 * me, 2)]
        ops = [
            operation("rlxsignal", kind="memory", ids=[0]),
            operation("rlxwait", kind="memory", ids=[0]),
            operation("nop"),
            operation(
                "rre", kind="memory", src=[*half, chunks(0, 2 * me, 2)], dst=half, reduce_op="sum"
            ),
            operation("nop"),
            operation("put", kind="memory", src=half, dst=[chunks(0, 2 * me, 2)]),
            operation("nop"),
            operation("signal", kind="memory", ids=[0]),
            operation("wait", kind="memory", ids=[0]),
        ]
        gpus.append(gpu(me, (4, 4, 0), [ops], [other], [(other, "i")]))
    return plan_of("allreduce", gpus)


def packets() -> Plan:
    """Two GPUs in packets, each chunk by a group of two thread blocks."""
    gpus = []
    for me in (0, 1):
        other, mine = 1 - me, [chunks("i", 0, 2)]
        group = [{"tb_id": part, "tbg_size": 2} for part in (0, 1)]
        blocks = [
            [
                operation("ppkt", kind="memory", src=mine, dst=[chunks(0, 0, 2)], tbg_info=part),
                operation("repkt", src=[*mine, chunks("s", 0, 2)], dst=mine, tbg_info=part),
            ]
            for part in group
        ]
        gpus.append(gpu(me, (2, 2, 2), blocks, [other], [(other, "s")]))
    return plan_of("allreduce", gpus, protocol="LL")


def send_recv() -> Plan:
    """Three GPUs in a ring, through ports, with a barrier and a semaphore between two blocks."""
    gpus = []
    for me in range(3):
        after, before = (me + 1) % 3, (me + 2) % 3
        sends = [
            operation("signal", kind="port", ids=[1]),
            operation("wait", kind="port", ids=[0]),
            operation("nop"),
            operation("pwsf", kind="port", ids=[0], src=[chunks("i", 0)], dst=[chunks(0, 0)]),
            operation("wait", kind="port", ids=[1]),
            operation("nop"),
            operation("sem_release", sems=[0]),
            operation("barrier", barrier_id=3, num_threadblocks=2),
        ]
        copies = [
            operation("sem_acquire", sems=[0]),
            operation("nop"),
            operation("copy", src=[chunks("s", 0)], dst=[chunks("o", 0)]),
            operation("barrier", barrier_id=3, num_threadblocks=2),
        ]
        blocks = [sends, copies]
        gpus.append(
            gpu(me, (1, 1, 1), blocks, [after, before], [(after, "s")], kind="port", semaphores=1)
        )
    return plan_of("sendrecv", gpus, inplace=False)


def one_adds() -> Plan:
    """GPU 0 adds what both have and writes it to both; GPU 1 only says when."""
    both = [chunks("i", 0, 2), chunks(0, 0, 2)]
    adds = [
        operation("wait", kind="memory", ids=[0]),
        operation("nop"),
        operation("rres", kind="memory", src=both, dst=both, reduce_op="max"),
        operation("nop"),
        operation("signal", kind="memory", ids=[0]),
    ]
    waits = [
        operation("signal", kind="memory", ids=[0]),
        operation("wait", kind="memory", ids=[0]),
    ]
    return plan_of(
        "allreduce",
        [gpu(0, (2, 2, 0), [adds], [1], [(1, "i")]), gpu(1, (2, 2, 0), [waits], [0], [])],
    )


def fetched() -> Plan:
    """Each GPU copies its own chunk and gets the other's."""
    gpus = []
    for me in (0, 1):
        ops = [
            operation("copy", src=[chunks("i", 0)], dst=[chunks("o", me)]),
            operation("get", kind="memory", ids=[0], src=[chunks(0, 0)], dst=[chunks("o", 1 - me)]),
        ]
        gpus.append(gpu(me, (1, 2, 0), [ops], [1 - me], [(1 - me, "i")]))
    return plan_of("allgather", gpus, inplace=False)


def passed_on() -> Plan:
    """A broadcast in packets along a line of three GPUs."""
    first = [operation("ppkt", kind="memory", src=[chunks("i", 0)], dst=[chunks(0, 0)])]
    second = [
        operation("rppkt", kind="memory", src=[chunks("s", 0)], dst=[chunks(0, 0)]),
        operation("upkt", src=[chunks("s", 0)], dst=[chunks("i", 0)]),
    ]
    third = [operation("upkt", src=[chunks("s", 0)], dst=[chunks("i", 0)])]
    gpus = [
        gpu(0, (1, 1, 1), [first], [1], [(1, "s")]),
        gpu(1, (1, 1, 1), [second], [0, 2], [(2, "s")]),
        gpu(2, (1, 1, 1), [third], [1], []),
    ]
    return plan_of("broadcast", gpus, protocol="LL")


def added_and_sent() -> Plan:
    """GPU 0 adds packets, keeps the sum in both forms and sends it back in packets."""
    sums = [chunks("i", 0), chunks("s", 1), chunks(0, 0)]
    adds = [
        operation("recspkt", kind="memory", src=[chunks("i", 0), chunks("s", 0)], dst=sums),
        operation("upkt", src=[chunks("s", 1)], dst=[chunks("i", 0)]),
    ]
    gives = [
        operation("ppkt", kind="memory", src=[chunks("i", 0)], dst=[chunks(0, 0)]),
        operation("upkt", src=[chunks("s", 0)], dst=[chunks("i", 0)]),
    ]
    gpus = [
        gpu(0, (1, 1, 2), [adds], [1], [(1, "s")]),
        gpu(1, (1, 1, 1), [gives], [0], [(0, "s")]),
    ]
    return plan_of("allreduce", gpus, protocol="LL")


def pipelined() -> Plan:
    """Two GPUs, All-Gather through scratch: one block puts piece by piece, another takes them out.

    Rounds are told to the other GPU by signals, and within it by a semaphore.
    """
    gpus = []
    for me in (0, 1):
        other = 1 - me
        rounds = {"unit_size": 1 << 16, "num_chunks": 2}
        sent = [
            operation("put", kind="memory", src=[chunks("o", 2 * me, 2)], dst=[chunks(0, 0, 2)]),
            operation("nop"),
            operation("signal", kind="memory", ids=[0]),
        ]
        taken = [
            operation("wait", kind="memory", ids=[0]),
            operation("nop"),
            operation("sem_release", sems=[0]),
        ]
        stored = [
            operation("sem_acquire", sems=[0]),
            operation("nop"),
            operation("copy", src=[chunks("s", 0, 2)], dst=[chunks("o", 2 * other, 2)]),
        ]
        blocks = [
            [operation("pipeline", iter_context=rounds, ops=ops)] for ops in (sent, taken, stored)
        ]
        gpus.append(gpu(me, (2, 4, 2), blocks, [other], [(other, "s")], semaphores=1))
    return plan_of("allgather", gpus)
