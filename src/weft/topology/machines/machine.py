"""A machine, or the fabric between machines, as a file describes it: parts and links.

Readers make a `Machine`; `weft.topology.machines.network` makes a `Topology` of it, `join` one
machine of several. A part keeps what tells it from others (bus ids, GUIDs), a link how many
cables it stands for, so that what is missing can be named.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from weft.topology.rates import Rate

ENDPOINTS = ("gpu", "host")
"""Kinds of parts that are NPUs: GPUs; where a file knows none, hosts."""


@dataclass(frozen=True)
class Part:
    """A GPU, a switch, an adapter.

    Attributes
    ----------
    kind
        ``gpu``, ``nvswitch``, ``pci`` (a PCI switch or bridge), ``cpu``, ``nic``, ``host``; of a
        fabric ``leaf``, ``spine``, ``core``, or ``switch`` where the level is not known.
    name
        What the file calls it, unique among the parts of its host and kind.
    host
        The host it is in; empty in a file of one host, and for a switch of the fabric.
    ids
        GUIDs and the like, in small letters without ``0x``, that it has in other files too.
    port
        The rate of an adapter's own ports; None if none is said.
    adds
        Whether it can copy and add what passes (NVLS).
    """

    kind: str
    name: str
    host: str = ""
    ids: tuple[str, ...] = ()
    port: Rate | None = None
    adds: bool = False

    @property
    def described(self) -> str:
        """In words, such as ``nic mlx5_0 of dgx-01``."""
        where = f" of {self.host}" if self.host and self.kind != "host" else ""
        return f"{self.kind} {self.name}{where}"


@dataclass(frozen=True)
class Cable:
    """What joins two parts, one way.

    Attributes
    ----------
    kind
        ``nvlink``, ``xgmi``, ``c2c``, ``pcie``, ``cpu``; of a fabric what it leads up to: ``leaf``
        (an adapter's link), ``spine``, ``core``.
    src, dst
        Numbers of parts.
    rate
        That of all of them together; None if the file does not say.
    count
        How many there are side by side.
    latency
        ps; None where the file says none, as nearly all do.
    """

    kind: str
    src: int
    dst: int
    rate: Rate | None
    count: int = 1
    latency: int | None = None


@dataclass
class Machine:
    """What a file says of one host, several hosts, or the fabric between hosts.

    Attributes
    ----------
    name
        For printing.
    source
        What kind of file said it, such as ``an NCCL topology file``.
    parts, cables
        GPUs are in the order in which they become NPUs.
    notes
        What was not said or left out, one sentence each.
    doubts
        Where the file contradicts itself, and what was taken: something may be wrong there.
    asked
        Kinds of links whose rate is needed even where GPUs reach each other without them.
    """

    name: str
    source: str
    parts: list[Part] = field(default_factory=list)
    cables: list[Cable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    asked: frozenset[str] = frozenset()

    def add(self, part: Part) -> int:
        """Add a part; gives its number."""
        self.parts.append(part)
        return len(self.parts) - 1

    def join(self, kind: str, a: int, b: int, rate: Rate | None, count: int = 1) -> None:
        """Cables both ways; `rate` is that of one way."""
        self.cables.append(Cable(kind, a, b, rate, count))
        self.cables.append(Cable(kind, b, a, rate, count))

    def of_kind(self, *kinds: str) -> list[int]:
        """Numbers of the parts of these kinds."""
        return [i for i, part in enumerate(self.parts) if part.kind in kinds]

    def of_host(self, host: str) -> Machine:
        """The same machine in a host of this name; of several hosts, each in one of its own."""
        names = {part.host: f"{host}/{part.host}" if part.host else host for part in self.parts}
        return replace(self, parts=[replace(part, host=names[part.host]) for part in self.parts])
