"""Which chunks of an All-Reduce the parts are: sums that reach everybody, whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from weft.collective import Chunks, Collective, Sets
from weft.errors import FormatError, UnclearError
from weft.formats.chakra._flows import ADVICE, Flows
from weft.formats.chakra._payloads import ALIGNMENTS, Payloads, same_chunk
from weft.formats.imported import Hints
from weft.units import format_size


def all_reduced(flows: Flows, group: Sequence[int], hints: Hints) -> Payloads:
    """The chunks of an All-Reduce: parts of equal size whose whole sums reach everybody once."""
    sums = _Sums(flows, group)
    merged = sums.merged()
    reached = sums.reached(merged)
    alike: dict[int, list[int]] = defaultdict(list)
    for part in sorted(set(merged)):
        alike[int(flows.size[part])].append(part)
    everyone = sum(1 << npu for npu in group)
    groups = [
        found
        for parts in alike.values()
        for found in same_chunk([reached[part] for part in parts], everyone, parts)
    ]
    groups.sort(key=min)
    demand, numbers = _demand(flows, group, hints, [int(flows.size[g[0]]) for g in groups])
    number_of = {part: number for g, number in zip(groups, numbers, strict=True) for part in g}
    return Payloads(demand, np.array([number_of[part] for part in merged], dtype=np.int32))


class _Sums:
    """Whose contributions each NPU has of each part at the end."""

    def __init__(self, flows: Flows, group: Sequence[int]) -> None:
        self._flows = flows
        self._rank = {npu: rank for rank, npu in enumerate(group)}
        self._all = (1 << len(self._rank)) - 1
        sets = [int.from_bytes(row.tobytes(), "little") for row in flows.contributors]
        self._has: dict[tuple[int, int], int] = defaultdict(int)
        rows = zip(flows.part.tolist(), flows.dst.tolist(), flows.message.tolist(), strict=True)
        for part, npu, message in rows:
            self._has[part, npu] |= sets[message]

    def _own(self, npu: int) -> int:
        return 1 << self._rank[npu] if npu in self._rank else 0

    def merged(self) -> list[int]:
        """For each part the first that is the same sum: sums that no node adds up go together."""
        whole = {
            part for (part, npu), has in self._has.items() if has | self._own(npu) == self._all
        }
        pieces: dict[tuple[int, int], list[int]] = defaultdict(list)
        for part in range(len(self._flows)):
            if part not in whole:
                key = int(self._flows.npu[part]), int(self._flows.size[part])
                pieces[key].append(part)
        first = list(range(len(self._flows)))
        for (npu, _), parts in pieces.items():
            sets = [self._has[part, npu] & ~self._own(npu) for part in parts]
            for found in same_chunk(sets, self._all & ~self._own(npu), parts):
                for part in found:
                    first[part] = min(found)
        return first

    def reached(self, merged: list[int]) -> dict[int, int]:
        """The NPUs, as bits, that end with the whole sum of each merged part."""
        together: dict[tuple[int, int], int] = defaultdict(int)
        for (part, npu), has in self._has.items():
            together[merged[part], npu] |= has
        reached: dict[int, int] = defaultdict(int)
        for (part, npu), has in together.items():
            if has | self._own(npu) == self._all:
                reached[part] |= 1 << npu
        return reached


def _received(flows: Flows, group: Sequence[int]) -> int:
    """Bytes that the NPU of the group receives that receives least: all of the buffer, or more."""
    nodes, recv = flows.nodes, flows.messages.recv
    bytes_ = np.bincount(nodes.npu[recv], weights=nodes.size[recv], minlength=len(nodes.files))
    return int(bytes_[list(group)].min())


def _demand(
    flows: Flows, group: Sequence[int], hints: Hints, sizes: list[int]
) -> tuple[Collective, list[int]]:
    """An All-Reduce with chunks of these sizes, and the number of each."""
    where = flows.nodes.path(0)
    total = sum(sizes)
    if hints.size is not None and hints.size != total:
        sentence = (
            f"{where}: the messages sum {format_size(total)} of the all-reduce, but --size says "
            f"{format_size(hints.size)}"
        )
        if _received(flows, group) < hints.size:
            raise FormatError(sentence)
        raise UnclearError(f"{sentence}; if that is right, {ADVICE}")
    if hints.chunks is not None and hints.chunks * len(group) != len(sizes):
        raise FormatError(
            f"{where}: the messages sum {len(sizes)} chunks among {len(group)} NPUs, but --chunks "
            f"says {hints.chunks} a share"
        )
    ascending = sorted(range(len(sizes)), key=lambda i: (sizes[i], i))
    for alignment in ALIGNMENTS if len(sizes) % len(group) == 0 else ():
        demand = Collective.of(
            "all-reduce", group, total, len(sizes) // len(group), None, alignment
        )
        order = np.argsort(demand.chunks.bytes, kind="stable")
        if demand.chunks.bytes[order].tolist() == [sizes[i] for i in ascending]:
            numbers = [0] * len(sizes)
            for i, number in zip(ascending, order.tolist(), strict=True):
                numbers[i] = number
            return demand, numbers
    cut = np.array(sizes, dtype=np.int64)
    same = np.zeros(len(sizes), dtype=np.int32)
    members = Sets.of([sorted(group)])
    parts = Chunks.build(cut, np.cumsum(cut) - cut, same, same, members, reduce=True)
    return Collective("all-reduce", tuple(group), total, parts=parts), list(range(len(sizes)))
