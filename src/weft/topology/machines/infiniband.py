"""An InfiniBand fabric as its tools list it: nodes, and the ports that lead from one to another.

`ibnetdiscover` and `iblinkinfo` say the same in two ways; here it becomes a `Machine`. Adapters are
known by GUID, and by what they are called: a host and a device, as in ``node01 mlx5_0``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from weft.documents import PlacedError
from weft.quoting import brief, counted, quoted
from weft.topology.machines.hostlist import natural
from weft.topology.machines.machine import Cable, Machine, Part
from weft.topology.machines.tiers import name_tiers
from weft.topology.rates import INFINIBAND, Rate

LANES = (1, 2, 4, 8, 12)
"""How many lanes a link of InfiniBand can have."""
_MAKER = re.compile(r"(?i)MT[0-9]+|ConnectX.*|Mellanox|NVIDIA")
_DEVICE = re.compile(r"[A-Za-z]\S*[0-9]\S*")
_UNNAMED = re.compile(
    r"(?i)^(?:\(none\)|localhost(?:[0-9.-].*)?|linux|ubuntu|debian|centos|rocky|rhel|unknown)$"
)
"""What a host is called before anybody gives it a name: several may be called so."""
_MANAGES = re.compile(r"(?i)(?:^|[^a-z])(?:c?ufm|mgm?t|mngt|management|opensm)(?:[^a-z]|$)")
_MANAGED = re.compile(r"MF0;(.+):[^:/]+/U[0-9]+")
"""How a managed switch calls itself: its own name, then its model."""
SHARP = "Aggregation Node"
NO_GUID = "lid"
"""What stands for a GUID that is not known begins with it."""


@dataclass
class Node:
    """A switch, an adapter or a router.

    Attributes
    ----------
    kind
        ``switch``, ``nic`` or ``router``.
    called
        What it says of itself, as the fabric's tools print it.
    whole
        Whether the file lists it; False if it is only named as the other end of a link.
    """

    kind: str
    guid: str
    called: str
    line: int
    whole: bool = False
    ports: dict[int, str] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[str, ...]:
        """GUIDs of the node and of its ports, as far as they are known."""
        known = dict.fromkeys([self.guid, *filter(None, self.ports.values())])
        return tuple(guid for guid in known if not guid.startswith(NO_GUID))

    @property
    def described(self) -> str:
        kind = "adapter" if self.kind == "nic" else self.kind
        return f"{kind} {self.guid} {quoted(self.called)}" if self.called else f"{kind} {self.guid}"


@dataclass(frozen=True)
class _End:
    """What one line says of a port: where it leads, and how fast."""

    peer: str
    port: int
    rate: Rate | None
    line: int


Port = tuple[str, int]
"""The GUID of a node, and the number of a port."""


def small(guid: str) -> str:
    """A GUID as Weft writes it: small letters, no 0x, no zeros before it."""
    return guid.lower().removeprefix("0x").lstrip("0") or "0"


def lanes_rate(width: int, generation: str) -> Rate | None:
    """The rate of a link of so many lanes, of ``NDR`` and the like; None if there is none such."""
    lane = INFINIBAND.get(generation)
    return lane * width if lane and width in LANES else None


@dataclass
class Fabric:
    """What is read of a fabric so far."""

    nodes: dict[str, Node] = field(default_factory=dict)
    ends: dict[Port, _End] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    def node(self, kind: str, guid: str, called: str, line: int, *, whole: bool) -> Node:
        """The node with this GUID, new or known.

        Raises
        ------
        PlacedError
            The file lists it a second time, or as something else.
        """
        known = self.nodes.get(guid)
        if known is None:
            known = self.nodes[guid] = Node(kind, guid, called, line, whole)
            return known
        if known.kind != kind:
            raise PlacedError(
                f"{known.described} of line {known.line} is called a {kind} here; expected one kind"
                " for each GUID",
                line=line,
            )
        if whole:
            if known.whole:
                raise PlacedError(
                    f"{known.described} is listed a second time, first on line {known.line}; "
                    "expected one listing of each node",
                    line=line,
                )
            known.whole, known.line, known.called = True, line, called or known.called
        return known

    def link(self, node: Node, port: int, peer: Node, far: int, rate: Rate | None, at: int) -> None:
        """What a line says: a port of a node leads to a port of another.

        Raises
        ------
        PlacedError
            Another line says that one of these ports leads elsewhere.
        """
        near = self.ends.get((node.guid, port))
        if near is not None:
            raise PlacedError(
                f"port {port} of {node.described} is listed a second time, first on line "
                f"{near.line}",
                line=at,
            )
        self.ends[node.guid, port] = _End(peer.guid, far, rate, at)

    def machine(self, name: str, source: str) -> Machine:
        """The fabric with its hosts.

        Raises
        ------
        PlacedError
            There are no links, they contradict each other, or a switch is named but not listed.
        """
        for node in self.nodes.values():
            if node.kind == "switch" and not node.whole:
                raise PlacedError(
                    f"a link leads to {node.described}, which the file does not list; expected all "
                    "switches with their ports: the file may be cut short",
                    line=node.line,
                )
        links = self._links()
        if not links:
            last = max(self.nodes.values(), key=lambda node: node.line)
            raise PlacedError(
                f"no link is listed, of {counted(self._kinds())}; expected the ports of "
                f"{last.described} and where they lead",
                line=last.line,
            )
        return _Building(Machine(name, source), self, links).build()

    def _kinds(self) -> dict[str, int]:
        kinds = Counter(node.kind for node in self.nodes.values())
        return {"adapter" if kind == "nic" else kind: number for kind, number in kinds.items()}

    def _links(self) -> dict[tuple[Port, Port], Rate | None]:
        """Each link once, at the lower of the rates of its two ends."""
        links: dict[tuple[Port, Port], Rate | None] = {}
        taken: dict[Port, int] = {}
        differ: list[str] = []
        for here, end in self.ends.items():
            there = end.peer, end.port
            back = self.ends.get(there)
            if back is not None and (back.peer, back.port) != here:
                raise PlacedError(
                    f"port {here[1]} of {self.nodes[here[0]].described} leads to port {end.port} "
                    f"of {self.nodes[end.peer].described}, which line {back.line} says leads to "
                    f"port {back.port} of {self.nodes[back.peer].described}",
                    line=end.line,
                )
            if back is None:
                if there in taken:
                    raise PlacedError(
                        f"port {end.port} of {self.nodes[end.peer].described} is the end of two "
                        f"links, here and on line {taken[there]}",
                        line=end.line,
                    )
                taken[there] = end.line
            rate = end.rate
            if back is not None and back.rate is not None:
                if rate is not None and rate != back.rate:
                    differ.append(f"line {end.line}, of {self.nodes[here[0]].described}")
                rate = min(rate or back.rate, back.rate, key=lambda rate: rate.nominal)
            links[(here, there) if here <= there else (there, here)] = rate
        if differ:
            number = len(differ) // 2
            self.doubts.append(
                f"of {counted({'link': number})} the two ends say different rates, such as on "
                f"{differ[0]}; the lower counts"
            )
        return links


@dataclass
class _Building:
    """From nodes and links to parts and cables."""

    machine: Machine
    fabric: Fabric
    links: dict[tuple[Port, Port], Rate | None]
    parts: dict[str, int] = field(default_factory=dict)
    rates: dict[str, list[Rate | None]] = field(default_factory=dict)
    """By GUID, those of all its links."""
    linked: set[int] = field(default_factory=set)
    """Parts with a link."""

    def build(self) -> Machine:
        for ends, rate in self.links.items():
            for guid, _ in ends:
                self.rates.setdefault(guid, []).append(rate)
        self.switches()
        hosts = self.adapters()
        others = self.leave_out(hosts)
        for name in sorted(hosts, key=natural):
            self.host(name, hosts[name])
        self.cables()
        name_tiers(self.machine, but=others)
        self.machine.notes.extend(self.fabric.notes)
        self.machine.doubts.extend(self.fabric.doubts)
        return self.machine

    def of_kind(self, kind: str) -> list[Node]:
        """The nodes of a kind, in the order in which they are listed."""
        found = [node for node in self.fabric.nodes.values() if node.kind == kind]
        return sorted(found, key=lambda node: (not node.whole, node.line))

    def note(self, sentence: str) -> None:
        self.machine.notes.append(sentence)

    def switches(self) -> None:
        """Switches, under the shortest names that tell them apart."""
        nodes = self.of_kind("switch")
        names = {node.guid: node.guid for node in nodes}
        for short in (False, True):
            form = {node.guid: switch_name(node.called, short=short) for node in nodes}
            used = Counter(form.values())
            names |= {guid: name for guid, name in form.items() if name and used[name] == 1}
        for node in nodes:
            part = Part("switch", names[node.guid], ids=node.ids)
            self.parts[node.guid] = self.machine.add(part)
        routers = self.of_kind("router")
        if routers:
            self.note(
                f"left out: {counted({'router': len(routers)})} to other subnets, such as "
                f"{routers[0].described}"
            )

    def adapters(self) -> dict[str, list[int]]:
        """Adapters; gives them by the host that they name, in the order of the file."""
        nodes = self.of_kind("nic")
        able = [node for node in nodes if SHARP in node.called]
        if able:
            self.note(
                f"left out: {counted({'aggregation node': len(able)})} of SHARP; whether a job may "
                "have switches add is not in the file, so they are taken not to"
            )
        nodes = [node for node in nodes if SHARP not in node.called]
        cut = [node for node in nodes if not node.whole]
        if cut:
            self.note(
                f"{counted({'adapter': len(cut)})} known only by the switches they hang on, such "
                f"as {cut[0].described}: the file may be cut short"
            )
        named = {node.guid: host_and_device(node.called) for node in nodes}
        used = Counter(named.values())
        hosts: dict[str, list[int]] = {}
        for node in nodes:
            host, device = named[node.guid]
            name = device if device and used[host, device] == 1 else node.guid
            part = Part("nic", name, host, node.ids, total(self.rates.get(node.guid, [])))
            number = self.parts[node.guid] = self.machine.add(part)
            hosts.setdefault(host, []).append(number)
        twice = [" ".join(key) for key, number in used.items() if number > 1 and all(key)]
        if twice:
            self.machine.doubts.append(
                f"{counted({'name': len(twice)})} of several adapters each, such as "
                f"{quoted(twice[0])}: these adapters go by their GUIDs"
            )
        return hosts

    def leave_out(self, hosts: dict[str, list[int]]) -> list[int]:
        """Take out hosts that do not compute, or cannot be told apart; gives their adapters."""
        nameless = hosts.pop("", [])
        if nameless:
            self.note(
                f"left out: {counted({'adapter': len(nameless)})} of no known host, such as nic "
                f"{self.machine.parts[nameless[0]].name}; the name of an adapter is to begin with "
                "that of its host"
            )
        out = list(nameless)
        linked = self.linked = {self.parts[guid] for guid in self.rates if guid in self.parts}
        for leaves, why in (
            (_UNNAMED.search, "such a name is not of one host alone"),
            (_MANAGES.search, "they manage the fabric, by their names"),
            (lambda host: linked.isdisjoint(hosts[host]), "no link leads there"),
        ):
            found = [host for host in hosts if leaves(host)]
            numbers = [number for host in found for number in hosts.pop(host)]
            if found:
                self.note(
                    f"left out: {brief(', '.join(found), 200)} with "
                    f"{counted({'adapter': len(numbers)})}; {why}"
                )
            out += numbers
        return out

    def host(self, name: str, adapters: Iterable[int]) -> None:
        """A host, in which nothing is slower than the ports of its adapters."""
        host = self.machine.add(Part("host", name, name))
        for adapter in adapters:
            port = self.machine.parts[adapter].port
            for src, dst in ((host, adapter), (adapter, host)) if adapter in self.linked else ():
                self.machine.cables.append(Cable("host", src, dst, port, latency=0))

    def cables(self) -> None:
        """The links, each a cable of its own."""
        loops = 0
        for ((a, _), (b, _)), rate in self.links.items():
            loops += a == b
            if a != b and a in self.parts and b in self.parts:
                self.machine.join("link", self.parts[a], self.parts[b], rate)
        if loops:
            self.note(f"left out: {counted({'link': loops})} from a node to itself")


def total(rates: list[Rate | None]) -> Rate | None:
    """All rates together; None if one of them is not known, or there is none."""
    known = [rate for rate in rates if rate is not None]
    if not known or len(known) < len(rates):
        return None
    reached = [rate.reachable for rate in known if rate.reachable is not None]
    return Rate(
        sum(rate.nominal for rate in known), sum(reached) if len(reached) == len(known) else None
    )


def switch_name(called: str, *, short: bool) -> str:
    """What a switch is called; `short`: without what managed ones put around their names."""
    managed = _MANAGED.fullmatch(called) if short else None
    return managed[1] if managed else " ".join(called.split())


def host_and_device(called: str) -> tuple[str, str]:
    """From ``node01 mlx5_0`` to host and device; empty for what it does not name."""
    words = called.split()
    if not 1 <= len(words) <= 2 or _MAKER.fullmatch(words[0]):
        return "", ""
    if len(words) == 1:
        return words[0], ""
    return (words[0], words[1]) if _DEVICE.fullmatch(words[1]) else ("", "")
