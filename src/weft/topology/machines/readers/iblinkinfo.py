"""What ``iblinkinfo`` prints: every port of an InfiniBand fabric, with the state of its link.

By default a node has a line of its own, followed by its ports, and the other end of a link is known
by its LID; with ``-l`` every line has the GUIDs of both ends, but not what kinds of nodes they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from weft.documents import Document, PlacedError
from weft.quoting import counted, quoted
from weft.topology.labels import Wishes
from weft.topology.machines.infiniband import (
    NO_GUID,
    Fabric,
    Node,
    host_and_device,
    lanes_rate,
    small,
)
from weft.topology.machines.machine import Machine
from weft.topology.machines.reader import READERS, Reader
from weft.topology.rates import Rate

TITLE = "a fabric of iblinkinfo"
GENERATIONS = {
    "2.5": "SDR",
    "5.0": "DDR",
    "10.0": "QDR",
    "10.0 (FDR10)": "FDR10",
    "14.0625": "FDR",
    "25.78125": "EDR",
    "53.125": "HDR",
    "106.25": "NDR",
    "212.5": "XDR",
}
"""By Gbit/s of a lane on the wire, as the tool prints them."""
ADAPTER_PORTS = 2
"""More ports has a switch only."""
_BEGINS = re.compile(r"\]\s*==\(.{0,200}?\)\s*==>")
_HEAD = re.compile(r"(Switch|CA|Router):?\s++(?:0x([0-9a-fA-F]{1,16})\s++)?(.*)")
_KINDS = {"Switch": "switch", "CA": "nic", "Router": "router"}
_GUID = r"(?:0x([0-9a-fA-F]{1,16})\s+)?"
_ROW = re.compile(
    rf'{_GUID}(?:"(.*?)"\s+)?([0-9]{{1,9}})\s+([0-9]{{1,5}})\[\s*+[0-9]*\s*\]\s+==(\(.*?\))==>\s*(.*)'
)
_PEER = re.compile(
    rf'{_GUID}([0-9]{{1,9}})\s+([0-9]{{1,5}})\[\s*+[0-9]*\s*\]\s+"(.*)"\s*(?:\(([^()]*)\))?'
)
_LINK = re.compile(
    r"\(\s*([0-9]{1,2})X\s+([0-9.]{1,12}) Gbps( \(FDR10\))?\s+(\w+)\s*/\s*(\w+)\s*\).*"
)
_STATE = re.compile(r"\(.*?(\w{1,16})\s{0,16}/\s*(\w+)\s*\).*")


def recognise(document: Document) -> bool:
    return bool(_BEGINS.search(document.text[:65536]))


def read(document: Document, wishes: Wishes) -> Machine:  # noqa: ARG001 - the file says all
    reading = _Reading()
    for line, text in enumerate(document.text.split("\n"), 1):
        text = text.strip()
        if text and not text.startswith("#"):
            reading.line(text, line)
    return reading.fabric().machine(document.path.stem, TITLE)


@dataclass
class _Ports:
    """What is known of a node; `kind` is empty where the file does not say it."""

    kind: str
    called: str
    line: int
    listed: bool = True
    guid: str = ""
    ports: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Row:
    """A port, and what is at the other end."""

    node: _Ports
    port: int
    rate: Rate | None
    guid: str
    lid: int
    far: int
    called: str
    line: int


@dataclass
class _Reading:
    """What is read so far; who is at the other end of a link is known when all is."""

    nodes: list[_Ports] = field(default_factory=list)
    by_guid: dict[str, _Ports] = field(default_factory=dict)
    by_lid: dict[int, _Ports] = field(default_factory=dict)
    by_name: dict[str, _Ports] = field(default_factory=dict)
    """Adapters of listings by line, whose ports have a GUID each."""
    rows: list[_Row] = field(default_factory=list)
    now: _Ports | None = None
    down: int = 0
    idle: list[int] = field(default_factory=list)
    slow: list[tuple[str, str]] = field(default_factory=list)
    strange: list[int] = field(default_factory=list)

    def line(self, text: str, line: int) -> None:
        if "==>" in text:
            self.port(text, line)
        elif text.startswith(tuple(_KINDS)) and (head := _HEAD.fullmatch(text)):
            kind, guid, called = head.groups()
            called = " ".join(called.split()).removesuffix(":").rstrip()
            self.now = self.new(_Ports(_KINDS[kind], called, line))
            if guid:
                self.own(self.now, small(guid), line)
        else:
            self.strange.append(line)

    def new(self, node: _Ports) -> _Ports:
        self.nodes.append(node)
        return node

    def own(self, node: _Ports, guid: str, line: int) -> None:
        """A GUID of a node; the first is what it goes by."""
        other = self.by_guid.setdefault(guid, node)
        if other is not node:
            raise PlacedError(
                f"GUID {guid} is that of {quoted(other.called)} on line {other.line}; expected one "
                "listing of each node",
                line=line,
            )
        node.guid = node.guid or guid

    def port(self, text: str, line: int) -> None:
        match = _ROW.fullmatch(text)
        if match is None:
            raise PlacedError(
                f"{quoted(text)} is no port; expected LID, port and link such as 2 17[  ] ==( 4X "
                '106.25 Gbps Active/  LinkUp)==> 4 1[  ] "n02 HCA-1" ( )',
                line=line,
            )
        guid, called, lid, port, link, peer = match.groups()
        node = self.node(guid, called, int(port), line)
        if int(lid) and self.by_lid.setdefault(int(lid), node) is not node:
            other = self.by_lid[int(lid)]
            raise PlacedError(
                f"LID {lid} is that of {quoted(other.called)} on line {other.line} too; expected "
                "the nodes of one subnet",
                line=line,
            )
        if int(port) in node.ports:
            raise PlacedError(
                f"port {port} of {quoted(node.called)} is listed a second time", line=line
            )
        node.ports[int(port)] = small(guid) if guid else ""
        self.link(node, int(port), link, peer, line)

    def node(self, guid: str | None, called: str | None, port: int, line: int) -> _Ports:
        """Whose port a line is of."""
        if called is not None:
            return self.by_line(guid or "", " ".join(called.split()), port, line)
        if self.now is None:
            raise PlacedError(
                "a port comes before any node; expected a line such as Switch: "
                "0x2c5eab0300b87b40 leaf01: first",
                line=line,
            )
        if self.now.kind != "switch":
            if not guid:
                raise PlacedError(
                    f"a port without a GUID stands below adapter {quoted(self.now.called)}; "
                    "expected it below a line such as Switch: 0x2c5eab0300b87b40 leaf01:",
                    line=line,
                )
            self.own(self.now, small(guid), line)
        return self.now

    def by_line(self, guid: str, called: str, port: int, line: int) -> _Ports:
        """Whose port it is where the line says that itself: a GUID and a name."""
        known = self.by_guid.get(small(guid))
        if known is None and all(host_and_device(called)):
            known = self.by_name.get(called)  # the other port of an adapter
            if known is not None and port in known.ports:
                known = None
        if known is None:
            known = self.new(_Ports("", called, line))
        if all(host_and_device(called)):
            self.by_name.setdefault(called, known)
        self.own(known, small(guid), line)
        return known

    def link(self, node: _Ports, port: int, link: str, peer: str, line: int) -> None:
        """The state of a link, and where it leads if it is up."""
        state = _STATE.fullmatch(link)
        if state is None:
            raise PlacedError(
                f"{quoted(link)} is no state of a link; expected one such as ( 4X 106.25 Gbps "
                "Active/ LinkUp)",
                line=line,
            )
        if state[1] == "Down":
            self.down += 1
            return
        if state[1] != "Active":
            self.idle.append(line)
            return
        match = _PEER.fullmatch(peer)
        if match is None:
            raise PlacedError(
                f"the link is up, but {quoted(peer)} is no other end of it; expected LID, port and "
                'name such as 4 1[  ] "n02 HCA-1" ( )',
                line=line,
            )
        guid, lid, far, called, could = match.groups()
        if "Could be" in (could or ""):
            self.slow.append((f"port {port} of {node.called}, line {line}", could))
        self.rows.append(
            _Row(
                node,
                port,
                _rate(link, line),
                small(guid) if guid else "",
                int(lid),
                int(far),
                " ".join(called.split()),
                line,
            )
        )

    def fabric(self) -> Fabric:
        """All nodes and links."""
        ends = [(row, self.other_end(row)) for row in self.rows]
        fabric = Fabric()
        made: dict[int, Node] = {}
        for node in self.nodes:
            several = len(node.ports) > ADAPTER_PORTS or max(node.ports, default=0) > ADAPTER_PORTS
            kind = node.kind or ("switch" if several else "nic")
            guid = node.guid or f"{NO_GUID}less-{node.line}"  # without a port
            made[id(node)] = fabric.node(kind, guid, node.called, node.line, whole=node.listed)
            if kind != "switch":
                made[id(node)].ports.update(node.ports)
        for row, peer in ends:
            a, b = made[id(row.node)], made[id(peer)]
            fabric.link(a, row.port, b, row.far, row.rate, row.line)
        self.note(fabric)
        return fabric

    def other_end(self, row: _Row) -> _Ports:
        """The node a link leads to; one that is not listed is made."""
        known = self.by_guid.get(row.guid) if row.guid else self.by_lid.get(row.lid)
        if known is None:
            guid = row.guid or f"{NO_GUID}{row.lid}"
            known = self.new(_Ports("", row.called, row.line, listed=False, guid=guid))
            (self.by_guid if row.guid else self.by_lid)[row.guid or row.lid] = known  # type: ignore[index]
        elif known.called != row.called and row.called:
            raise PlacedError(
                f"the link leads to {quoted(row.called)}, but LID or GUID are those of "
                f"{quoted(known.called)} on line {known.line}",
                line=row.line,
            )
        if not known.listed:
            known.ports.setdefault(row.far, row.guid)
        return known

    def note(self, fabric: Fabric) -> None:
        if self.slow:
            where, could = self.slow[0]
            fabric.doubts.append(
                f"at {counted({'port': len(self.slow)})} a link is slower than its ends can, such "
                f"as {where}: {' '.join(could.split())}"
            )
        if self.idle:
            fabric.doubts.append(
                f"left out: links of {counted({'port': len(self.idle)})} that are up but not "
                f"active, first on line {self.idle[0]}"
            )
        if self.down:
            fabric.notes.append(f"{counted({'port': self.down})} without a link")
        if self.strange:
            lines = counted({"line": len(self.strange)})
            fabric.notes.append(
                f"not read: {lines} that are no listing, first line {self.strange[0]}"
            )


def _rate(link: str, line: int) -> Rate | None:
    """The rate of a link; None if the tool does not know what it is."""
    match = _LINK.fullmatch(link)
    if match is None:
        if "Gbps" in link:
            raise PlacedError(
                f"{quoted(link)} has no lanes of a known rate; expected such as 4X 106.25 Gbps",
                line=line,
            )
        return None
    lanes, speed, fdr10, *_ = match.groups()
    generation = GENERATIONS.get(speed + (fdr10 or ""), "")
    rate = lanes_rate(int(lanes), generation)
    if rate is None:
        raise PlacedError(
            f"{quoted(f'{lanes}X {speed} Gbps')} is no rate of InfiniBand; expected lanes and "
            f"Gbit/s of one such as 4X 106.25 Gbps, of {', '.join(GENERATIONS)}",
            line=line,
        )
    return rate


READERS.add("iblinkinfo", Reader(name="iblinkinfo", title=TITLE, recognise=recognise, read=read))
