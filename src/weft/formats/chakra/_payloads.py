"""Which chunks of a collective the parts are that flow through a trace."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft import _core
from weft.arrays import Int32
from weft.collective import PATTERNS, Chunks, Collective, all_to_allv, custom, permutation
from weft.errors import FormatError, InputError
from weft.formats.chakra._exact_cover import exact_cover
from weft.formats.chakra._flows import BOTH, COLLECT, SPREAD, Flows
from weft.formats.imported import Hints
from weft.units import format_size

# Sums for one NPU, and what one NPU hands out: parts are known by where they end.
COLLECTED = ("reduce-scatter", "reduce", "scatter")
# Boundaries other tools cut at: any byte, or elements and their blocks.
ALIGNMENTS = (16, 1, 2, 4, 8, 32, 64, 128, 256, 512, 1024, 4096)

_NEAR = 64  # groups that a part is tried with where no exact fit was found

Ends = tuple[int, int]  # the NPU a part starts (or ends) at, and the others it is for, as bits
Groups = dict[tuple[Ends, int], list[list[int]]]  # by ends and bytes: parts that are the same chunk


@dataclass(frozen=True, eq=False)
class Payloads:
    """A collective, and the chunk that each part is."""

    demand: Collective
    chunk: Int32


def direction_of(kind: str, hints: Hints) -> _core.TraceDirection:
    """Whether parts are known by their start (spread), their end (collect), or both."""
    if kind == "all-reduce":
        return BOTH
    sums = {move.reduce for move in hints.moves or ()} if kind == "custom" else {kind in COLLECTED}
    if len(sums) != 1:
        raise InputError("a custom pattern of sums and copies does not follow from messages alone")
    return COLLECT if sums == {True} else SPREAD


class Matching:
    """Finds the chunks of a collective in which each part starts on one NPU, or ends on one."""

    def __init__(self, flows: Flows, kind: str, group: Sequence[int], hints: Hints) -> None:
        self._flows, self._kind, self._group, self._hints = flows, kind, tuple(group), hints
        self._ends = direction_of(kind, hints) == COLLECT
        self._nodes = flows.first_nodes()
        near, far = (flows.dst, flows.src) if self._ends else (flows.src, flows.dst)
        self._reached, left = flows.masks(far), flows.masks(near)
        # Where a part comes to rest: no other place passes it on.
        pairs = zip(self._reached, left, strict=True)
        self._rests = [reached & ~passed for reached, passed in pairs]

    def run(self) -> Payloads:
        """The collective, and the chunk that each part is."""
        if self._kind in ("all-to-allv", "permutation"):
            pairs = self._pairs()
            return self._assign(self._groups(pairs), [self._between(pairs)])
        if self._kind == "custom":
            chunks = self._hints.chunks or 1
            demand = custom(self._group, self._hints.moves or (), chunks_per_share=chunks)
            return self._assign(self._groups(self._wanted(demand.chunks)), [demand])
        shares = PATTERNS[self._kind].shares(len(self._group))  # of one chunk of one byte each
        sample = Collective.of(self._kind, self._group, shares, 1, self._hints.root, alignment=1)
        groups = self._groups(self._wanted(sample.chunks))
        return self._assign(groups, self._cuts(groups))

    def _ends_of(self, chunks: Chunks) -> list[Ends]:
        """Where each chunk starts (ends) alone, and where else it must be."""
        alone, others = (chunks.post, chunks.pre) if self._ends else (chunks.pre, chunks.post)
        sets = [chunks.members(s).tolist() for s in range(len(chunks.set_offsets) - 1)]
        masks = [sum(1 << npu for npu in members) for members in sets]
        found = []
        for one, many in zip(alone.tolist(), others.tolist(), strict=True):
            npu = sets[one][0]
            found.append((npu, masks[many] & ~(1 << npu)))
        return found

    def _wanted(self, chunks: Chunks) -> list[Ends]:
        """For each part the ends of the chunks it can be one of."""
        known: dict[int, dict[int, None]] = defaultdict(dict)
        for npu, others in self._ends_of(chunks):
            if others:
                known[npu][others] = None
        return [self._nearest(part, known) for part in range(len(self._flows))]

    def _nearest(self, part: int, known: dict[int, dict[int, None]]) -> Ends:
        npu = int(self._flows.npu[part])
        if npu not in known:
            does = "brings data that stays on" if self._ends else "sends data that starts on"
            why = "" if self._ends else ", since it waits for no COMM_RECV"
            raise self._flows.nodes.error(
                int(self._nodes[part]),
                f"{does} NPU {npu}{why}, but no chunk of the {self._kind} does",
            )
        first, rest = next(iter(known[npu])), self._rests[part]
        if len(known[npu]) == 1:
            return npu, first
        if rest & -rest in known[npu]:
            return npu, rest & -rest
        return npu, next((others for others in known[npu] if others & rest), first)

    def _pairs(self) -> list[Ends]:
        """For patterns between pairs: each part goes where it comes to rest."""
        return [
            (int(npu), rest & -rest) for npu, rest in zip(self._flows.npu, self._rests, strict=True)
        ]

    def _groups(self, wanted: list[Ends]) -> Groups:
        """Parts that are the same chunk, by ends and bytes."""
        alike: dict[tuple[Ends, int], list[int]] = defaultdict(list)
        for part, ends in enumerate(wanted):
            alike[ends, int(self._flows.size[part])].append(part)
        groups = {}
        for ((npu, others), size), parts in alike.items():
            covered = self._rests if others & (others - 1) == 0 else self._reached
            masks = [covered[part] for part in parts]
            groups[(npu, others), size] = same_chunk(masks, others, parts)
        return groups

    def _cuts(self, groups: Groups) -> list[Collective]:
        """Ways to cut the buffers that may give the parts."""
        shares: dict[Ends, int] = defaultdict(int)
        counts: dict[Ends, int] = defaultdict(int)
        for (ends, size), parts in groups.items():
            shares[ends] += size * len(parts)
            counts[ends] += len(parts)
        size = self._hints.size or self._whole_size(shares)
        found = {self._hints.chunks or max(counts.values(), default=1): None}
        if self._hints.size is not None and self._hints.chunks is None and groups:
            piece = max(bytes_ for _, bytes_ in groups) * PATTERNS[self._kind].shares(
                len(self._group)
            )
            if size % piece == 0:
                found[size // piece] = None
        return [
            Collective.of(self._kind, self._group, size, chunks, self._hints.root, alignment)
            for chunks in found
            for alignment in ALIGNMENTS
        ]

    def _whole_size(self, shares: dict[Ends, int]) -> int:
        pattern, n = PATTERNS[self._kind], len(self._group)
        sizes = list(shares.values())
        # Shares are cut as evenly as boundaries allow; others are not what they were taken for.
        even = max(sizes, default=0) - min(sizes, default=0) <= max(ALIGNMENTS)
        if pattern.own_buffers:  # all buffers are cut alike: a share is known from any sender
            by_taker = {others: size for (_, others), size in shares.items()}
            if len(by_taker) == pattern.shares(n):
                return sum(by_taker.values())
        elif len(sizes) == pattern.shares(n) and even:
            return sum(sizes)
        if not sizes or min(sizes) != max(sizes):
            raise FormatError(
                f"{self._flows.nodes.path(0)}: its messages do not tell the size of the "
                f"{self._kind}; give it with --size"
            )
        return sizes[0] * pattern.shares(n)

    def _between(self, pairs: list[Ends]) -> Collective:
        """The pattern between pairs in which each has the bytes of its parts."""
        rank = {npu: r for r, npu in enumerate(self._group)}
        sent: Counter[tuple[int, int]] = Counter()
        for part, (source, bit) in enumerate(pairs):
            for npu in (source, bit.bit_length() - 1):
                if npu not in rank:
                    raise self._flows.nodes.error(
                        int(self._nodes[part]),
                        f"sends what comes from or goes to NPU {npu}, which is not in the group",
                    )
            sent[rank[source], rank[bit.bit_length() - 1]] += int(self._flows.size[part])
        pieces = self._hints.chunks or max(Counter(pairs).values(), default=1)
        if self._kind == "all-to-allv":
            matrix = np.zeros((len(rank), len(rank)), dtype=object)
            for pair, size in sent.items():
                matrix[pair] = size
            return all_to_allv(self._group, matrix, chunks_per_share=pieces)
        to, given = list(range(len(rank))), [0] * len(rank)
        for (giver, taker), size in sent.items():
            to[giver] = taker
            given[giver] += size
        size = self._hints.size or max(given, default=0)
        return permutation(self._group, size, to, chunks_per_share=pieces)

    def _assign(self, groups: Groups, cuts: Sequence[Collective]) -> Payloads:
        """Take the first way of cutting that has a chunk for every group of parts.

        If there is none, one that has chunks of the right sizes, though fewer: what comes twice
        is for the judge to name.
        """
        failure: FormatError | None = None
        for exact in (True, False):
            for demand in cuts:
                try:
                    return Payloads(demand, self._numbered(groups, demand, exact=exact))
                except FormatError as error:
                    failure = failure or error
        assert failure is not None
        raise failure

    def _numbered(self, groups: Groups, demand: Collective, *, exact: bool) -> Int32:
        free: dict[tuple[Ends, int], list[int]] = defaultdict(list)
        sizes = demand.chunks.bytes.tolist()
        for number, ends in enumerate(self._ends_of(demand.chunks)):
            free[ends, sizes[number]].append(number)
        chunk = np.zeros(len(self._flows), dtype=np.int32)
        for key, found in groups.items():
            numbers = free.get(key, [])
            if len(numbers) < (len(found) if exact else 1):
                raise self._flows.nodes.error(
                    int(self._nodes[found[len(numbers)][0]]),
                    f"moves {key[1]} B that are no chunk of the {self._kind} of "
                    f"{format_size(demand.size)} with {demand.chunks_per_share} chunks per share; "
                    "--size and --chunks may say otherwise",
                )
            for i, parts in enumerate(found):
                chunk[parts] = numbers[min(i, len(numbers) - 1)]
        return chunk


def same_chunk(sets: Sequence[int], whole: int, parts: Sequence[int]) -> list[list[int]]:
    """Group parts that together reach the whole; where they cannot, those that do not overlap."""
    groups = exact_cover(sets, whole)
    if groups is None:
        groups = []
        filled: list[int] = []
        for i, mask in enumerate(sets):
            recent = range(max(0, len(groups) - _NEAR), len(groups))
            fits = next((g for g in recent if not filled[g] & mask), None)
            if fits is None:
                groups.append([i])
                filled.append(mask)
            else:
                groups[fits].append(i)
                filled[fits] |= mask
    return [[parts[i] for i in group] for group in groups]
