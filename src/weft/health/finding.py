"""A finding: what is wrong, where, and how it would be if it were right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from weft.topology.machines import Machine, Part
from weft.units import format_bandwidth

T = TypeVar("T")

WORDS = {"nvlink": "NVLink", "xgmi": "XGMI", "c2c": "C2C", "pcie": "PCIe", "cpu": "CPU"}
"""What kinds of cables are called in sentences, where not as they are."""


class Ends(NamedTuple):
    """A kind of cable, and the numbers of the parts that it joins, one way."""

    kind: str
    src: int
    dst: int

    @property
    def back(self) -> Ends:
        return Ends(self.kind, self.dst, self.src)


@dataclass(frozen=True, order=True)
class Speed:
    """B/s of all cables side by side, 0 if it is not known; and how many there are."""

    rate: int
    count: int

    def words(self, kind: str) -> str:
        """``16 lanes, 31.5GB/s``."""
        unit = "lane" if kind == "pcie" else "link"
        count = f"{self.count} {unit}{'s' * (self.count != 1)}, " if self.count > 1 else ""
        return count + (format_bandwidth(self.rate) if self.rate else "of unknown rate")


Repair = dict[Ends, Speed]
"""The cables of the healthy twin, where they differ."""


@dataclass
class Finding:
    """Something that looks wrong.

    Attributes
    ----------
    rule
        Which rule found it, such as ``fewer-links``.
    text
        What it is, in a sentence without its full stop.
    repair
        The cables that the healthy twin has; empty if it cannot be told.
    losses
        By collective, the share of its speed that is lost; None where no bound tells.
    """

    rule: str
    text: str
    repair: Repair = field(default_factory=dict)
    losses: dict[str, float | None] = field(default_factory=dict)

    @property
    def worst(self) -> float:
        """The largest loss that is known."""
        return max((loss for loss in self.losses.values() if loss is not None), default=0.0)


class Body:
    """A machine as the rules look at it: parallel cables as one, neighbours, siblings."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.parts: Sequence[Part] = machine.parts
        links: dict[Ends, Speed] = {}
        self.cables: dict[Ends, list[Speed]] = defaultdict(list)
        for cable in machine.cables:
            ends = Ends(cable.kind, cable.src, cable.dst)
            before = links.get(ends, Speed(0, 0))
            rate = cable.rate.nominal if cable.rate else 0
            links[ends] = Speed(before.rate + rate, before.count + cable.count)
            self.cables[ends].append(Speed(rate, cable.count))
        self.links: Mapping[Ends, Speed] = links
        self.near: dict[int, list[Ends]] = defaultdict(list)
        """By part, the links that leave it."""
        for ends in links:
            self.near[ends.src].append(ends)

    def name(self, part: int) -> str:
        return self.parts[part].described

    def hosts(self, *kinds: str) -> list[tuple[str, list[int]]]:
        """Parts of these kinds, by host."""
        found: dict[str, list[int]] = defaultdict(list)
        for part in self.machine.of_kind(*kinds):
            found[self.parts[part].host].append(part)
        return list(found.items())

    def to_kind(self, part: int, *kinds: str) -> list[int]:
        """Neighbours of these kinds."""
        near = (ends.dst for ends in self.near[part])
        return list(dict.fromkeys(other for other in near if self.parts[other].kind in kinds))


def usual(values: Iterable[T], *, tie: bool = False) -> T | None:
    """What more than half of them are; at a tie of two the larger one, if that is asked for."""
    counts = Counter(values)
    if not counts:
        return None
    most, number = counts.most_common(1)[0]
    total = sum(counts.values())
    if 2 * number > total:
        return most
    if tie and 2 * number == total and len(counts) == 2:
        return max(counts)  # type: ignore[type-var]
    return None


def counted_links(count: int, kind: str) -> str:
    """``no NVLink``, ``1 NVLink``, ``17 NVLinks``."""
    word = WORDS.get(kind, kind)
    return f"{count or 'no'} {word}{'s' * (count > 1)}"


def meant_so(few: int, all_of_them: int) -> bool:
    """Whether what differs from most is a kind of its own: several, and a quarter of all."""
    return few > 1 and 4 * few >= all_of_them


def the_others(number: int, what: str) -> str:
    """``the other GPU has``, ``the other 7 GPUs have``."""
    return f"the other {what} has" if number == 1 else f"the other {number} {what}s have"
