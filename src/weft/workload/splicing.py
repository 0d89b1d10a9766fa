"""Writes lowered traces: nodes of algorithms where collectives were, all else byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from weft import _core
from weft.documents import check_replaceable, new_folder
from weft.errors import FormatError
from weft.workload.choosing import Job
from weft.workload.loading import Workload
from weft.workload.nodes import COMP, METADATA, Node, encode
from weft.workload.process_groups import COMM_GROUP_NAME

if TYPE_CHECKING:
    from weft.workload.lowering import Lowering

LAST_ID = 2**64 - 1


@dataclass(frozen=True)
class _Use:
    """One use of an algorithm on one rank."""

    job: Job
    first_tag: int


def save(lowering: Lowering, folder: Path) -> None:
    """Write the lowered traces, and the comm-group file beside them if there is one."""
    workload = lowering.workload
    check_output(workload, folder)
    with new_folder(folder, _names(workload)) as place:
        for rank in range(lowering.ranks):
            with (place / workload.file_name(rank)).open("wb") as out:
                _write_rank(lowering, rank, out)
        if lowering.comm_group is not None:
            (place / COMM_GROUP_NAME).write_bytes(lowering.comm_group.read_bytes())


def check_output(workload: Workload, folder: Path) -> None:
    """Raise if the lowered traces could not be written to `folder`."""
    check_replaceable(folder, _names(workload))
    if folder.resolve() == workload.folder.resolve():
        raise FormatError(f"cannot write {folder}: the workload itself is there")


def _names(workload: Workload) -> re.Pattern[str]:
    """The files that a folder may hold to be replaced."""
    return re.compile(rf"{re.escape(workload.prefix)}\.[0-9]+\.et|{re.escape(COMM_GROUP_NAME)}")


class _Shares:
    """One rank's shares of the algorithms, each made when first used."""

    def __init__(self, lowering: Lowering, rank: int) -> None:
        self._algorithms, self._rank = lowering.algorithms, rank
        self._shares: dict[Job, _core.TraceShare] = {}

    def __getitem__(self, job: Job) -> _core.TraceShare:
        if job not in self._shares:
            self._shares[job] = self._algorithms[job].splicer.share(self._rank)
        return self._shares[job]

    def is_touched(self, job: Job) -> bool:
        return self._rank in self._algorithms[job].touched


def _write_rank(lowering: Lowering, rank: int, out: BinaryIO) -> None:
    """One rank's trace. New nodes have ids above all others, in the order of issue."""
    shares = _Shares(lowering, rank)
    relayed = list(_relayed(lowering, rank, shares))
    if rank < lowering.workload.ranks:
        next_id = _write_spliced(lowering, rank, shares, relayed, out)
    else:  # an NPU that has no part in the workload but to relay
        next_id = 0
        out.write(METADATA)
        if not relayed:
            out.write(encode(Node(0, "idle", COMP)))  # readers refuse a trace without nodes
    for use in relayed:
        out.write(shares[use.job].write(next_id, use.first_tag, b""))
        next_id += shares[use.job].ids(member=False)


def _write_spliced(
    lowering: Lowering, rank: int, shares: _Shares, relayed: list[_Use], out: BinaryIO
) -> int:
    """The trace with its collectives replaced; gives the first id that is free after it."""
    trace, uses = lowering.workload.traces[rank], _own(lowering, rank)
    next_id = trace.frames.last_id + 1
    needed = sum(shares[use.job].ids(member=True) for use in uses.values())
    needed += sum(shares[use.job].ids(member=False) for use in relayed)
    if next_id + needed > LAST_ID:
        raise FormatError(
            f"{trace.path}: node {next_id - 1} leaves too few ids above it for {needed} new nodes"
        )
    first_ids = {}
    for node in sorted(uses):
        first_ids[node] = next_id
        next_id += shares[uses[node].job].ids(member=True)
    begins, ends = trace.frames.begin.tolist(), trace.frames.end.tolist()
    content, at = trace.content(), 0
    for node in sorted(uses, key=begins.__getitem__):
        begin, end, use = begins[node], ends[node], uses[node]
        out.write(memoryview(content)[at:begin])
        out.write(shares[use.job].write(first_ids[node], use.first_tag, content[begin:end]))
        at = end
    out.write(memoryview(content)[at:])
    return next_id


def _own(lowering: Lowering, rank: int) -> dict[int, _Use]:
    """The uses in whose place one of the rank's own collectives was, by its number."""
    found: dict[int, _Use] = {}
    for batch, tags in zip(lowering.batches, lowering.first_tags, strict=True):
        for communicator, steps in zip(batch.communicators, batch.steps, strict=True):
            if rank in communicator.nodes:
                nodes = communicator.nodes[rank][steps].tolist()
                uses = map(_Use, batch.jobs, tags.tolist())
                found.update(zip(nodes, uses, strict=True))
    return found


def _relayed(lowering: Lowering, rank: int, shares: _Shares) -> Iterator[_Use]:
    """The uses in which the rank only passes on what others send."""
    for batch, tags in zip(lowering.batches, lowering.first_tags, strict=True):
        if any(rank in communicator.nodes for communicator in batch.communicators):
            continue
        for job, tag in zip(batch.jobs, tags.tolist(), strict=True):
            if shares.is_touched(job):
                yield _Use(job, tag)
