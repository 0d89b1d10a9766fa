"""Which collectives are lowered, why others stay, and which are synthesized together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from weft.arrays import Int64
from weft.collective import Collective
from weft.errors import unknown_name
from weft.formats.chakra.schema import COMM_TYPES
from weft.units import MAX_BYTES
from weft.workload.communicators import ABSENT, Communicator

LOWERED = ("all-gather", "all-reduce", "all-to-all", "reduce-scatter")
_ROOTED = ("broadcast", "gather", "reduce", "scatter")
_Sequence = tuple[tuple[str, int], ...]  # pattern and comm_size of one collective after the other


@dataclass(frozen=True)
class Job:
    """What is synthesized once: one collective in several groups at the same time.

    Attributes
    ----------
    kind
        Name of the pattern.
    size
        comm_size of the nodes: bytes of one rank's part in an All-Gather, else of its whole
        buffer.
    groups
        The groups, each as ranks in order of their rank in it.
    """

    kind: str
    size: int
    groups: tuple[tuple[int, ...], ...]

    def collectives(self, npus: Sequence[int], *, relay: bool) -> list[Collective]:
        """One a group; rank r is ``npus[r]``."""
        return [
            Collective.of(
                self.kind,
                [npus[rank] for rank in group],
                self.size * (len(group) if self.kind == "all-gather" else 1),
                relay=relay,
            )
            for group in self.groups
        ]


@dataclass(frozen=True, eq=False)
class Batch:
    """Communicators without common ranks that lower the same collectives one after the other.

    Attributes
    ----------
    communicators
        In order of their members.
    steps
        For each of them: numbers of the collectives that are lowered.
    jobs
        What is synthesized for each step.
    """

    communicators: tuple[Communicator, ...]
    steps: tuple[Int64, ...]
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class Choice:
    """Which collectives to lower.

    Attributes
    ----------
    only
        Names of patterns; all that can be lowered if empty.
    min_size
        The least comm_size.
    """

    only: Collection[str] = ()
    min_size: int = 0

    def __post_init__(self) -> None:
        for name in self.only:
            if name not in LOWERED:
                raise unknown_name("collective to lower", name, LOWERED)

    def reason_to_keep(self, kind: int, size: int, ranks: int) -> str | None:
        """Why a collective stays as it is; None if it is lowered."""
        name = COMM_TYPES.get(kind)
        if name is None:
            return "no comm_type" if kind == ABSENT else f"comm_type {kind} is unknown"
        if name in _ROOTED:
            return f"{name}: traces do not say the root"
        if name not in LOWERED:
            return f"{name}: moves no data"
        if size <= 0:
            return f"{name}: no size"
        if size * ranks > MAX_BYTES:
            return f"{name}: more than {MAX_BYTES} bytes"
        if self.only and name not in self.only:
            return f"{name}: not in --only"
        return f"{name}: smaller than --min-size" if size < self.min_size else None


def choose(
    communicators: Sequence[Communicator], choice: Choice, *, together: bool
) -> tuple[list[Batch], Counter[str]]:
    """Batches of what is lowered, and how many collectives stay for which reason."""
    kept: Counter[str] = Counter()
    layers: dict[_Sequence, dict[int, int]] = {}
    batches: dict[tuple[_Sequence, int], list[tuple[Communicator, Int64]]] = {}
    for number, communicator in enumerate(communicators):
        steps, sequence = _lowered(communicator, choice, kept)
        if not len(steps):
            continue
        # Groups with common ranks get different layers; the linear way to keep them apart.
        taken = layers.setdefault(sequence, {})
        layer = max(taken.get(rank, 0) for rank in communicator.members)
        taken.update(dict.fromkeys(communicator.members, layer + 1))
        key = (sequence, layer if together else number)
        batches.setdefault(key, []).append((communicator, steps))
    return [_batch(sequence, members) for (sequence, _), members in batches.items()], kept


def _lowered(
    communicator: Communicator, choice: Choice, kept: Counter[str]
) -> tuple[Int64, _Sequence]:
    """Numbers of the collectives that are lowered, and what they are."""
    ranks = len(communicator.members)
    pairs = list(zip(communicator.kind.tolist(), communicator.size.tolist(), strict=True))
    reasons = {pair: choice.reason_to_keep(*pair, ranks) for pair in set(pairs)}
    kept.update(reason for pair in pairs if (reason := reasons[pair]) is not None)
    steps = [k for k, pair in enumerate(pairs) if reasons[pair] is None]
    return np.array(steps, np.int64), tuple((COMM_TYPES[pairs[k][0]], pairs[k][1]) for k in steps)


def _batch(sequence: _Sequence, members: list[tuple[Communicator, Int64]]) -> Batch:
    members.sort(key=lambda member: member[0].members)
    communicators, steps = zip(*members, strict=True)
    groups = tuple(communicator.members for communicator in communicators)
    jobs = {step: Job(*step, groups) for step in set(sequence)}
    return Batch(communicators, steps, tuple(jobs[step] for step in sequence))
