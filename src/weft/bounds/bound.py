"""A bound, and what proves it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from weft.collective.groups import format_group
from weft.display import html_table, line
from weft.units import PS_PER_US, format_time


@dataclass(frozen=True)
class Certificate:
    """Where in the network a bound comes from: with its kind, all that is needed to check it.

    Attributes
    ----------
    parts
        Sets of nodes, by number: the NPU whose ``ingress`` or ``egress`` it is; the two ends of a
        ``path``; the nodes inside a ``cut``, which bytes leave; those inside a ``cone``, which
        they enter; the root of ``postal``; all parts of ``regions``. None for ``gossip``, whose
        parts are the single NPUs, nor for ``flow``.
    links
        Numbers of the links that carry what is counted, where these are few or chosen.
    """

    parts: tuple[tuple[int, ...], ...] = ()
    links: tuple[int, ...] = ()

    @classmethod
    def of(cls, parts: Iterable[Iterable[int]], links: Iterable[int] = ()) -> Certificate:
        """From arrays or lists."""
        return cls(tuple(tuple(map(int, part)) for part in parts), tuple(map(int, links)))

    def to_dict(self) -> dict[str, Any]:
        """The numbers for machines, in ranges such as ``0-7``."""
        return {
            "node_sets": [format_group(part) for part in self.parts],
            "counted_links": format_group(self.links) if self.links else "",
        }


@dataclass(frozen=True)
class Bound:
    """A time that no algorithm can beat.

    Attributes
    ----------
    time
        The strongest bound found for the given chunks, moved whole (picoseconds).
    kind
        Which argument gives it: ``ingress`` or ``egress`` of an NPU, ``path`` (the longest way
        a chunk must go), ``cut``, ``gossip`` (all receives over the total bandwidth), ``regions``
        (all that parts of the network must tell each other), ``cone`` (a cut that is crossed by
        little of use at first and at last), ``postal`` (how fast holders of a chunk can become
        more), ``flow`` (all that moves, by the shortest ways under some lengths of the links), or
        ``none`` when nothing need move.
    ideal
        The strongest one that holds for any chunking (picoseconds).
    certificate
        Where in the network `time` comes from.
    """

    time: int
    kind: str
    ideal: int
    certificate: Certificate = Certificate()

    def __repr__(self) -> str:
        ideal = f"{format_time(self.ideal)} for any chunks"
        return line(self, f"{format_time(self.time)} by {self.kind}", ideal)

    def _repr_html_(self) -> str:
        times = {"with these chunks": self.time, "with any chunks": self.ideal}
        rows = [(name, format_time(time)) for name, time in times.items()]
        return html_table(f"lower bound, by {self.kind}", rows)

    @property
    def time_us(self) -> float:
        return self.time / PS_PER_US

    @property
    def ideal_us(self) -> float:
        return self.ideal / PS_PER_US

    def stronger(self, other: Bound) -> Bound:
        """The better of both in each respect."""
        best = other if other.time > self.time else self
        ideal = max(self.ideal, other.ideal)
        return Bound(best.time, best.kind, ideal, best.certificate)


NONE = Bound(0, "none", 0)
