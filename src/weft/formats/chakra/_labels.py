"""Messages that say themselves which chunks they carry, by msg_chunk_idx and its companions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft.collective import MAX_CHUNKS, PATTERNS, Collective, all_reduce_of
from weft.errors import FormatError
from weft.formats.chakra._carried import Carried
from weft.formats.chakra._columns import ragged
from weft.formats.chakra._flows import Flows
from weft.formats.imported import Hints

Int64 = NDArray[np.int64]


def labelled(
    flows: Flows, kind: str, group: Sequence[int], hints: Hints
) -> tuple[Flows, Carried] | None:
    """What messages carry, by the numbers they have; None if they have none that say it.

    ``total_chunk_cnt`` is the number of chunks of the buffer, ``msg_chunk_idx`` the first one a
    message carries and ``msg_chunk_cnt`` how many follow each other. Where every NPU has a buffer
    of its own, as in All-to-All, that does not say whose chunk it is.
    """
    columns = flows.nodes.chunks
    if columns is None or PATTERNS[kind].own_buffers or len(flows.messages) == 0:
        return None
    first, count, total = (column[flows.messages.send] for column in columns)
    whole = int(total[0])
    wrong = (total != whole) | (first < 0) | (count < 1) | (first > whole - count)
    for message in np.flatnonzero(wrong | (whole > MAX_CHUNKS))[:1]:
        raise flows.nodes.error(
            int(flows.messages.send[message]),
            f"carries {count[message]} chunks from {first[message]} on, of {total[message]}; other "
            f"messages are of {whole}",
        )
    size = hints.size or _size(flows, count, whole)
    demand = _demand(kind, group, hints, size, whole)
    if demand is None or len(demand.chunks) != whole:
        return None
    message = np.repeat(np.arange(len(first)), count)
    chunk = ragged(first, count).astype(np.int32)
    numbers = np.arange(whole, dtype=np.int32)
    return replace(flows, message=message, part=chunk), Carried(demand, numbers)


def _size(flows: Flows, count: Int64, whole: int) -> int:
    sent = flows.nodes.size[flows.messages.send]
    largest = int(np.argmax(count))
    size = int(sent[largest]) * whole // int(count[largest])
    if not 0 < size <= 1 << 60:
        raise FormatError(
            f"{flows.nodes.path(0)}: its messages do not tell the size; give it with --size"
        )
    return size


def _demand(
    kind: str, group: Sequence[int], hints: Hints, size: int, whole: int
) -> Collective | None:
    shares = PATTERNS[kind].shares(len(group))
    if whole % shares == 0:
        return Collective.of(kind, group, size, whole // shares, hints.root)
    return all_reduce_of(group, size, whole) if kind == "all-reduce" else None
