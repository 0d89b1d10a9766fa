"""Who is in a process group: from a comm-group file, or from what PyTorch leaves in traces."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import msgspec

from weft.documents import Document, PlacedError, load_json, read_document
from weft.errors import InputError
from weft.quoting import quoted

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
