"""Writes lowered traces: nodes of algorithms where collectives were, all else byte for byte."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from weft import _core
from weft.documents import check_replaceable, new_folder
from weft.errors import FormatError
from weft.formats.chakra.encoding import FILE_HEAD, Node, encode
from weft.formats.chakra.schema import COMP
from weft.workload.communicators import COMM_GROUP_NAME
from weft.workload.loading import Workload

if TYPE_CHECKING:
    from weft.workload.lowering import Lowering

LAST_ID = 2**64 - 1


_Use = tuple[_core.TraceShare, int]  # one rank's share of an algorithm, and the first tag of a use


def save(lowering: Lowering, folder: Path) -> None:
    """Write the lowered traces, and the comm-group file beside them if there is one."""
    workload = lowering.workload
    check_output(workload, folder)
    with new_folder(folder, _names(workload)) as place:
        for rank in range(lowering.ranks):
            with (place / workload.files.path(rank).name).open("wb") as out:
                _write_rank(lowering, rank, out)
        if lowering.comm_group is not None:
            (place / COMM_GROUP_NAME).write_bytes(lowering.comm_group.read_bytes())


def check_output(workload: Workload, folder: Path) -> None:
    """Raise if the lowered traces could not be written to `folder`."""
    check_replaceable(folder, _names(workload))
    if folder.resolve() == workload.files.folder.resolve():
        raise FormatError(f"cannot write {folder}: the workload itself is there")


def _names(workload: Workload) -> re.Pattern[str]:
    """The files that a folder may hold to be replaced."""
    return re.compile(rf"{re.escape(workload.files.prefix)}[0-9]+\.et|{re.escape(COMM_GROUP_NAME)}")


def _write_rank(lowering: Lowering, rank: int, out: BinaryIO) -> None:
    """One rank's trace. New nodes have ids above all others, in the order of issue."""
    share = cache(lambda job: lowering.algorithms[job].splicer.share(rank))
    own: dict[int, _Use] = {}  # in whose place one of the rank's collectives was, by its number
    relayed: list[_Use] = []  # in which the rank only passes on what others send
    for batch, tags in zip(lowering.batches, lowering.first_tags, strict=True):
        uses = list(zip(batch.jobs, tags.tolist(), strict=True))
        members = zip(batch.communicators, batch.steps, strict=True)
        mine = [(group.nodes[rank], steps) for group, steps in members if rank in group.nodes]
        for nodes, steps in mine:
            own |= zip(nodes[steps].tolist(), ((share(job), tag) for job, tag in uses), strict=True)
        if not mine:
            touched = (use for use in uses if rank in lowering.algorithms[use[0]].touched)
            relayed += ((share(job), tag) for job, tag in touched)
    if rank < lowering.workload.ranks:
        next_id = _write_spliced(lowering.workload, rank, own, relayed, out)
    else:  # an NPU that has no part in the workload but to relay
        next_id = 0
        out.write(FILE_HEAD)
        if not relayed:
            out.write(encode(Node(0, "idle", COMP)))  # readers refuse a trace without nodes
    for part, tag in relayed:
        out.write(part.write(next_id, tag, b""))
        next_id += part.ids(member=False)


def _write_spliced(
    workload: Workload, rank: int, own: dict[int, _Use], relayed: list[_Use], out: BinaryIO
) -> int:
    """The trace with its collectives replaced; gives the first id that is free after it."""
    frames = workload.traces[rank].frames
    next_id = frames.last_id + 1
    needed = sum(part.ids(member=True) for part, _ in own.values())
    needed += sum(part.ids(member=False) for part, _ in relayed)
    if next_id + needed > LAST_ID:
        raise FormatError(
            f"{workload.files.path(rank)}: node {next_id - 1} leaves too few ids above "
            f"it for {needed} new nodes"
        )
    first_ids = {}
    for node in sorted(own):
        first_ids[node] = next_id
        next_id += own[node][0].ids(member=True)
    begins, ends = frames.begin.tolist(), frames.end.tolist()
    content, at = workload.content(rank), 0
    for node in sorted(own, key=begins.__getitem__):
        begin, end, (part, tag) = begins[node], ends[node], own[node]
        out.write(memoryview(content)[at:begin])
        out.write(part.write(first_ids[node], tag, content[begin:end]))
        at = end
    out.write(memoryview(content)[at:])
    return next_id
