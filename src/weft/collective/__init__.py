"""What must happen: a collective among a group of NPUs, as chunks with pre- and postconditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft.collective.chunks import Chunks
from weft.collective.patterns import PATTERNS, Pattern, share_boundaries
from weft.errors import InputError, unknown_name
from weft.units import MAX_BYTES

__all__ = ["MAX_CHUNKS", "PATTERNS", "Chunks", "Collective"]

MAX_CHUNKS = 1 << 28
DEFAULT_ALIGNMENT = 16


@dataclass(frozen=True)
class Collective:
    """One demand: a pattern among a group.

    Attributes
    ----------
    kind
        Name of the pattern, a key of `PATTERNS`.
    group
        The NPUs that take part, in order of rank.
    size
        Bytes of the largest buffer on one NPU, as nccl-tests counts it (All-Gather: the
        gathered output; Reduce-Scatter: the input; All-Reduce: the buffer).
    chunks_per_share
        In how many chunks each NPU's share is cut (its contribution in All-Gather, its shard
        in Reduce-Scatter and All-Reduce, the whole buffer in Broadcast and Reduce, each part in
        Gather and Scatter).
    root
        The NPU (its number, not its rank) that sends or receives in rooted patterns.
    alignment
        Chunk boundaries fall on multiples of this many bytes.
    """

    kind: str
    group: tuple[int, ...]
    size: int
    chunks_per_share: int = 1
    root: int | None = None
    alignment: int = DEFAULT_ALIGNMENT

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
        if not 1 <= self.chunks_per_share <= MAX_CHUNKS // len(self.group):
            raise InputError(
                f"{self.kind}: {self.chunks_per_share} chunks a share; expected 1 to "
                f"{MAX_CHUNKS // len(self.group)}"
            )
        if self.pattern.rooted and self.root is None:
            object.__setattr__(self, "root", self.group[0])
        if not self.pattern.rooted and self.root is not None:
            raise InputError(f"{self.kind} has no root, but root {self.root} was given")
        if self.root is not None and self.root not in self.group:
            raise InputError(f"{self.kind}: root {self.root} is not an NPU of the group")

    @classmethod
    def of(
        cls,
        kind: str,
        group: Sequence[int] | NDArray[np.int32],
        size: int,
        chunks_per_share: int = 1,
        root: int | None = None,
        alignment: int = DEFAULT_ALIGNMENT,
    ) -> Collective:
        """The same from any sequence of NPU numbers."""
        members = tuple(int(npu) for npu in group)
        return cls(kind, members, size, chunks_per_share, root, alignment)

    @property
    def pattern(self) -> Pattern:
        return PATTERNS[self.kind]

    @property
    def ranks(self) -> int:
        return len(self.group)

    @cached_property
    def chunks(self) -> Chunks:
        """The chunks with their pre- and postconditions, in order of the buffer."""
        marks = share_boundaries(
            self.pattern, self.ranks, self.size, self.chunks_per_share, self.alignment
        )
        root_rank = self.group.index(self.root) if self.root is not None else 0
        return self.pattern.build(np.array(self.group, dtype=np.int32), root_rank, marks)
