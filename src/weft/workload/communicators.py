"""Process groups, and which ranks' collectives belong together: the k-th of a group on each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from weft.arrays import Int64
from weft.documents import Document, PlacedError, load_json, naming, read_document
from weft.errors import FormatError, InputError
from weft.formats.chakra.schema import COMM_TYPES
from weft.quoting import quoted
from weft.units import format_size
from weft.workload.loading import Workload

COMM_GROUP_NAME = "comm_group.json"
EVERYONE = "0"  # ASTRA-sim's name for the group of all ranks; so does a node without a name

Groups = dict[str, tuple[int, ...]]


def load_comm_groups(path: str | os.PathLike[str], ranks: int) -> Groups:
    """The groups of a file such as ``{"1": [0, 1], "2": [2, 3]}``, in the order they are written.

    Parameters
    ----------
    ranks
        How many there are: members are 0 to ``ranks - 1``.
    """

    def build(document: Document) -> Groups:
        try:
            found = msgspec.convert(load_json(document.data), dict[str, list[int]])
        except msgspec.ValidationError:
            raise PlacedError(
                'expected an object of lists of ranks, such as {"1": [0, 1], "2": [2, 3]}'
            ) from None
        for name, members in found.items():
            try:
                check_members(name, members, ranks)
            except InputError as error:
                raise PlacedError(str(error), (name,)) from None
        return {name: tuple(members) for name, members in found.items()}

    return read_document(path, "comm-group", build)


def check_members(name: str, members: Sequence[int], ranks: int) -> None:
    """Raise unless the members are ranks, each once."""
    if not members:
        raise InputError(f"group {quoted(name)} has no ranks")
    if len(set(members)) != len(members):
        raise InputError(f"group {quoted(name)} names a rank twice")
    for rank in (min(members), max(members)):
        if not 0 <= rank < ranks:
            raise InputError(f"group {quoted(name)} names rank {rank}; ranks are 0 to {ranks - 1}")


def torch_groups(inputs: Sequence[bytes], ranks: int) -> Groups:
    """The groups that PyTorch wrote down when they were made.

    Each text holds a JSON list of ``{"pg_name": "3", "ranks": [1, 3], ...}``, in one or two
    pairs of brackets and quotes that converters put around it. No ranks means all.
    """
    groups: Groups = {}
    for text in inputs:
        for record in _records(text):
            name, members = record.get("pg_name"), record.get("ranks")
            if not isinstance(name, str) or not _are_ranks(members):
                raise InputError("a process group's pg_name is no text, or its ranks no list")
            if members:
                check_members(name, members, ranks)
            groups[name] = tuple(members or range(ranks))
    return groups


def _records(text: bytes) -> list[dict[str, Any]]:
    begin, end = text.find(b"[{"), text.rfind(b"}]")
    if begin < 0:
        return []  # no groups, or none that were written down
    try:
        found = msgspec.json.decode(text[begin : end + 2])
    except (msgspec.DecodeError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise InputError("the node that sets up process groups holds no JSON list of them")
    return found


def _are_ranks(value: Any) -> bool:
    return isinstance(value, list) and all(type(rank) is int for rank in value)


def group_of(name: str, torch: Groups, given: Groups, ranks: int) -> tuple[int, ...] | None:
    """The members of a group as a trace names it, or None.

    What the trace says itself comes first, as in ASTRA-sim; then the file; then everyone.
    """
    for groups in (torch, given):
        if name in groups:
            return groups[name]
    return tuple(range(ranks)) if name == EVERYONE else None


ABSENT = -1  # of comm_type and comm_size


@dataclass(frozen=True, eq=False)
class Communicator:
    """A process group and what it does, one collective after the other.

    Attributes
    ----------
    name
        As the traces call it.
    members
        Ranks, in order of their rank in the group.
    kind, size
        comm_type and comm_size of each collective.
    nodes
        For each member: which of its trace's collectives these are.
    """

    name: str
    members: tuple[int, ...]
    kind: Int64
    size: Int64
    nodes: Mapping[int, Int64] = field(repr=False)


def match_collectives(workload: Workload, given: Groups) -> list[Communicator]:
    """The communicators of a workload, in the order in which the lowest ranks first use them.

    Raises
    ------
    FormatError
        A group is unknown, or its members do not do the same: names file and node.
    """
    found: dict[tuple[str, tuple[int, ...]], dict[int, Int64]] = {}
    for rank in range(workload.ranks):
        for key, nodes in _of_rank(workload, rank, given):
            found.setdefault(key, {})[rank] = nodes
    return [_communicator(workload, *key, nodes) for key, nodes in found.items()]


def _of_rank(
    workload: Workload, rank: int, given: Groups
) -> list[tuple[tuple[str, tuple[int, ...]], Int64]]:
    """The groups that one rank uses, each with its collectives in order."""
    trace = workload.traces[rank]
    with naming(workload.files.path(rank)):
        torch = torch_groups(trace.frames.group_inputs, workload.ranks)
    # The last name is that of nodes without one: their number is -1.
    names = [name.decode(errors="backslashreplace") for name in trace.frames.group_names]
    names = [name or EVERYONE for name in [*names, ""]]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    of = np.array([numbers[name] for name in names])[trace.frames.group]
    order = np.argsort(of, kind="stable")
    firsts = np.searchsorted(of[order], np.arange(len(numbers) + 1))
    used: list[tuple[tuple[str, tuple[int, ...]], Int64]] = []
    for name, number in numbers.items():
        nodes = order[firsts[number] : firsts[number + 1]]
        if not len(nodes):
            continue
        members = group_of(name, torch, given, workload.ranks)
        place = workload.place(rank, int(nodes[0]))
        if members is None:
            raise FormatError(
                f"{place} is a collective of group {quoted(name)}, which neither the trace nor a "
                "comm-group file describes; give one with --comm-group"
            )
        if rank not in members:
            raise FormatError(
                f"{place} is a collective of group {quoted(name)}, but rank {rank} is not in it"
            )
        used.append(((name, members), nodes))
    return sorted(used, key=lambda item: int(item[1][0]))


def _communicator(
    workload: Workload, name: str, members: tuple[int, ...], nodes: dict[int, Int64]
) -> Communicator:
    """Check that all members do the same."""
    first = next(iter(nodes))
    kind, size = _columns(workload, first, nodes[first])
    for rank in members:
        if rank not in nodes:
            raise FormatError(
                f"{workload.place(first, int(nodes[first][0]))} is a collective of group "
                f"{quoted(name)}, in which rank {rank} does nothing"
            )
        other_kind, other_size = _columns(workload, rank, nodes[rank])
        shared = min(len(kind), len(other_kind))
        differ = (kind[:shared] != other_kind[:shared]) | (size[:shared] != other_size[:shared])
        for k in np.flatnonzero(differ)[:1]:
            raise FormatError(
                f"{workload.place(rank, int(nodes[rank][k]))} is {_shown(other_kind[k])} of "
                f"{_bytes(other_size[k])}, but collective {k} of group {quoted(name)} is "
                f"{_shown(kind[k])} of {_bytes(size[k])} in "
                f"{workload.place(first, int(nodes[first][k]))}"
            )
        if len(kind) != len(other_kind):
            more, less = (first, rank) if len(kind) > shared else (rank, first)
            raise FormatError(
                f"{workload.place(more, int(nodes[more][shared]))} is collective {shared} of "
                f"group {quoted(name)}, but rank {less} has only {shared}"
            )
    return Communicator(name, members, kind, size, nodes)


def _columns(workload: Workload, rank: int, nodes: Int64) -> tuple[Int64, Int64]:
    frames = workload.traces[rank].frames
    return frames.kind[nodes], frames.size[nodes]


def _shown(kind: int) -> str:
    return COMM_TYPES.get(int(kind), "of no comm_type" if kind == ABSENT else f"comm_type {kind}")


def _bytes(size: int) -> str:
    return "no size" if size == ABSENT else format_size(int(size))
