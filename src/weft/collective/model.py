"""A collective: one demand of a group of NPUs on the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft.collective.chunks import Chunks, cut
from weft.collective.patterns import PATTERNS, Pattern
from weft.errors import InputError, unknown_name
from weft.quoting import counted
from weft.units import MAX_BYTES, format_size
from weft.values import Value, read_only

MAX_CHUNKS = 1 << 28
DEFAULT_ALIGNMENT = 16


@dataclass(frozen=True, repr=False)
class Collective(Value):
    """One demand: a pattern among a group.

    Attributes
    ----------
    kind
        Name of the pattern, a key of `PATTERNS`.
    group
        The NPUs that take part, in order of rank.
    size
        Bytes of the largest buffer on one NPU, as nccl-tests counts it (All-Gather: the
        gathered output; Reduce-Scatter: the input; All-Reduce: the buffer; All-to-All: the
        send buffer).
    chunks_per_share
        In how many chunks each NPU's share is cut (its contribution in All-Gather, its shard
        in Reduce-Scatter and All-Reduce, the whole buffer in Broadcast and Reduce, each part in
        Gather, Scatter, All-to-All and custom patterns).
    root
        The NPU (its number, not its rank) that sends or receives in rooted patterns.
    alignment
        Chunk boundaries fall on multiples of this many bytes.
    relay
        Whether NPUs outside the group may pass chunks on.
    parts
        What moves, before it is cut in chunks, for patterns whose name does not say it: see
        `all_to_allv`, `permutation` and `custom`, which make them; and for an All-Reduce whose
        buffer is not cut in shares: see `all_reduce_of`.
    """

    kind: str
    group: tuple[int, ...]
    size: int
    chunks_per_share: int = 1
    root: int | None = None
    alignment: int = DEFAULT_ALIGNMENT
    relay: bool = True
    parts: Chunks | None = None

    def __post_init__(self) -> None:
        if self.kind not in PATTERNS:
            raise unknown_name("collective", self.kind, PATTERNS)
        if not self.group:
            raise InputError(f"{self.kind}: the group is empty")
        if len(set(self.group)) != len(self.group) or min(self.group) < 0:
            raise InputError(f"{self.kind}: the group must be distinct NPU numbers")
        if not 0 < self.size <= MAX_BYTES:
            raise InputError(
                f"{self.kind}: size {self.size} B is out of range; expected 1 B or more"
            )
        if self.alignment < 1:
            raise InputError(f"{self.kind}: alignment {self.alignment} B; expected 1 B or more")
        self._check_parts()
        # All-to-All may have more chunks in all than a table holds: see `chunks`.
        parts = self.part_count if self.parts is not None else self.pattern.shares(self.ranks)
        most = MAX_CHUNKS // max(parts, 1)
        if not 1 <= self.chunks_per_share <= most:
            raise InputError(
                f"{self.kind}: {self.chunks_per_share} chunks per share; expected 1 to {most}"
            )
        if self.pattern.rooted and self.root is None:
            object.__setattr__(self, "root", self.group[0])
        if not self.pattern.rooted and self.root is not None:
            raise InputError(f"{self.kind} has no root, but root {self.root} was given")
        if self.root is not None and self.root not in self.group:
            raise InputError(f"{self.kind}: root {self.root} is not an NPU of the group")

    def __repr__(self) -> str:
        root = "" if self.root is None else f", root {self.root}"
        cut = counted({"chunk": self.chunks_per_share})
        return (
            f"<Collective {self.kind} of {format_size(self.size)} among "
            f"{counted({'NPU': self.ranks})}{root}, {cut} per share>"
        )

    def _check_parts(self) -> None:
        if self.parts is not None and self.pattern.any_cut:
            self._check_cut(self.parts)
        elif (self.parts is None) != (self.pattern.build is not None):
            listed = self.parts is not None
            said = "says itself what moves" if listed else "needs to know what moves"
            raise InputError(f"{self.kind} {said}")
        if self.parts is None:
            return
        if not np.isin(self.parts.set_members, self.group).all():
            raise InputError(f"{self.kind}: its parts name NPUs outside the group")
        if self.parts.largest_buffer() != self.size:
            raise InputError(
                f"{self.kind}: size {self.size} B; its parts fill {self.parts.largest_buffer()} B"
            )

    def _check_cut(self, parts: Chunks) -> None:
        """Raise unless every part is a sum of the whole group, for the whole group."""
        used = np.unique([parts.pre, parts.post])
        group = sorted(self.group)
        whole = all(np.array_equal(parts.members(number), group) for number in used.tolist())
        if not whole or not parts.reduce.all():
            raise InputError(f"{self.kind}: its parts must be sums among the whole group")

    @classmethod
    def of(
        cls,
        kind: str,
        group: Sequence[int] | NDArray[np.int32],
        size: int,
        chunks_per_share: int = 1,
        root: int | None = None,
        alignment: int = DEFAULT_ALIGNMENT,
        relay: bool = True,
    ) -> Collective:
        """The same from any sequence of NPU numbers, for patterns known by name."""
        members = tuple(int(npu) for npu in group)
        return cls(kind, members, size, chunks_per_share, root, alignment, relay)

    @property
    def pattern(self) -> Pattern:
        return PATTERNS[self.kind]

    @property
    def ranks(self) -> int:
        return len(self.group)

    @property
    def part_count(self) -> int:
        """How many parts there are before they are cut in chunks."""
        return self.pattern.parts(self.ranks) if self.parts is None else len(self.parts)

    @property
    def chunk_count(self) -> int:
        """How many chunks there are at most: those without bytes are left out of `chunks`."""
        return self.part_count * self.chunks_per_share

    @cached_property
    def piece_bytes(self) -> NDArray[np.int64]:
        """Bytes of the pieces of one buffer, empty ones too, for patterns known by name."""
        return read_only(np.diff(self._marks))

    @cached_property
    def largest_chunk(self) -> int:
        """Bytes of the largest chunk; does not make the table of all."""
        if self.parts is not None:
            return self.chunks.largest
        return int(self.piece_bytes.max())

    @cached_property
    def smallest_chunk(self) -> int:
        """Bytes of the smallest chunk, 0 if some are left out; does not make the table."""
        if self.parts is not None:
            return int(self.chunks.bytes.min()) if len(self.chunks) else 0
        return int(self.piece_bytes.min())

    @cached_property
    def chunks(self) -> Chunks:
        """The chunks with their pre- and postconditions, in order of the buffer.

        Raises
        ------
        InputError
            There are more than a table of them may have.
        """
        if self.chunk_count > MAX_CHUNKS:
            raise InputError(
                f"{self.kind} among {self.ranks} NPUs has {self.chunk_count:,} chunks; at most "
                f"{MAX_CHUNKS:,} can be listed, and only vertex-transitive networks "
                "do without"
            )
        if self.parts is None:
            table = self._named()
        else:
            table = self.parts.cut(self.chunks_per_share, self.alignment)
        return table if self.relay else table.within(np.array(sorted(self.group), dtype=np.int32))

    @property
    def least_transfers(self) -> int:
        """How many transfers any algorithm takes at the least; does not make the table of chunks.

        In an All-to-All a chunk goes to one other NPU; in what everybody has, or gets, or adds to,
        it goes to or comes from all others.
        """
        if self.parts is not None or not self.smallest_chunk:
            return 0
        if self.pattern.own_buffers:
            return self.chunk_count - self.ranks * self.chunks_per_share
        everybody = ("all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce")
        return self.chunk_count * (self.ranks - 1) if self.kind in everybody else 0

    def _named(self) -> Chunks:
        assert self.pattern.build is not None
        root_rank = self.group.index(self.root) if self.root is not None else 0
        return self.pattern.build(np.array(self.group, dtype=np.int32), root_rank, self._marks)

    @property
    def _marks(self) -> NDArray[np.int64]:
        """Boundaries of the chunks of one buffer."""
        pieces = self.pattern.shares(self.ranks) * self.chunks_per_share
        return cut(self.size, pieces, self.alignment)
