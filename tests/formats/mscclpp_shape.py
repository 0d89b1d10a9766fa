"""The shape of MSCCL++ execution plans, and the executor's caps: part of the checker of plans."""

from __future__ import annotations

from typing import Any

Place = tuple[int, str, int]  # GPU, buffer, chunk


class WrongPlanError(Exception):
    """What is wrong with a plan."""


def need(condition: object, message: str) -> None:
    if not condition:
        raise WrongPlanError(message)


def check_shape(plan: dict[str, Any]) -> None:
    """Structure, caps, ranges."""
    for key in ("name", "collective", "protocol", "inplace", "gpus"):
        need(key in plan, f"no {key}")
    need(plan["protocol"] == "Simple", "protocol")
    gpus = plan["gpus"]
    largest = 0
    for rank, gpu in enumerate(gpus):
        need(gpu["id"] == rank, f"GPU {rank} has another id")
        need(gpu["input_chunks"] > 0 and gpu["output_chunks"] > 0, f"GPU {rank}: no chunk size")
        need(gpu["threadblocks"], f"GPU {rank}: a kernel without blocks")
        largest = max(largest, *(gpu[f"{b}_chunks"] for b in ("input", "output", "scratch")))
        for channel in gpu["channels"]:
            need(channel["channel_type"] in ("memory", "port"), "channel type")
            for peer in channel["connected_to"]:
                need(0 <= peer < len(gpus) and peer != rank, f"GPU {rank}: peer {peer}")
        for at, block in enumerate(gpu["threadblocks"]):
            need(block["id"] == at, f"GPU {rank}: block ids")
            check_block(gpus, gpu, block)
    message = "output_chunks" if plan["collective"] == "allgather" else "input_chunks"
    chunk = plan["max_message_size"] // gpus[0][message]
    need(chunk * largest < 1 << 64, "offsets beyond 64 bits")
    need(plan["min_message_size"] <= plan["max_message_size"], "message sizes")


def check_block(gpus: list[Any], gpu: dict[str, Any], block: dict[str, Any]) -> None:
    where = f"GPU {gpu['id']}, block {block['id']}"
    need(len(block["ops"]) <= 64, f"{where}: too many operations")
    for entry in block["channels"]:
        need(len(entry["channel_ids"]) <= 16, f"{where}: too many channels")
        known = flat(gpu, entry["channel_type"])
        need(all(0 <= c < len(known) for c in entry["channel_ids"]), f"{where}: channel")
    for entry in block["remote_buffer_refs"]:
        need(len(entry["remote_buffer_ids"]) <= 16, f"{where}: too many buffers")
        for number in entry["remote_buffer_ids"]:
            need(0 <= number < len(gpu["remote_buffers"]), f"{where}: buffer {number}")
            kinds = gpu["remote_buffers"][number]["access_channel_types"]
            need(entry["access_channel_type"] in kinds, f"{where}: access")
    for op in block["ops"]:
        need(len(op.get("channel_ids", ())) <= 8, f"{where}: channels of an operation")
        need(len(op.get("semaphore_ids", ())) <= 16, f"{where}: semaphores of an operation")
        for number in op.get("semaphore_ids", ()):
            need(0 <= number < len(gpu["semaphores"]), f"{where}: semaphore")
        for side in ("src_buff", "dst_buff"):
            need(len(op.get(side, ())) <= 10, f"{where}: buffers of an operation")
            for entry in op.get(side, ()):
                for place in places(gpu, block, op, entry):
                    owner = gpus[place[0]]
                    name = {"i": "input", "o": "output", "s": "scratch"}[place[1]]
                    need(0 <= place[2] < owner[f"{name}_chunks"], f"{where}: {place} out of range")


def flat(gpu: dict[str, Any], kind: str) -> list[int]:
    """The peers of a GPU's channels of one type, by number."""
    entries = [c["connected_to"] for c in gpu["channels"] if c["channel_type"] == kind]
    return [peer for peers in entries for peer in peers]


def listed(block: dict[str, Any], key: str, kind_key: str, ids: str, kind: str) -> list[int]:
    return [i for entry in block[key] if entry[kind_key] == kind for i in entry[ids]]


def places(
    gpu: dict[str, Any], block: dict[str, Any], op: dict[str, Any], entry: dict[str, Any]
) -> list[Place]:
    need(entry["size"] > 0, "empty range")
    rank, buffer = gpu["id"], entry.get("type")
    if "buffer_id" in entry:
        mine = listed(
            block,
            "remote_buffer_refs",
            "access_channel_type",
            "remote_buffer_ids",
            op["channel_type"],
        )
        need(0 <= entry["buffer_id"] < len(mine), "buffer id")
        remote = gpu["remote_buffers"][mine[entry["buffer_id"]]]
        rank, buffer = remote["rank"], remote["type"]
    return [(rank, buffer, entry["index"] + i) for i in range(entry["size"])]
