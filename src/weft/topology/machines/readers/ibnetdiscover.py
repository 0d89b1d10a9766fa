"""What ``ibnetdiscover`` prints: the nodes of an InfiniBand fabric, each with the ports it uses."""

from __future__ import annotations

import re

from weft.documents import Document, PlacedError
from weft.quoting import counted, quoted
from weft.topology.labels import Wishes
from weft.topology.machines.infiniband import Fabric, Node, lanes_rate, small
from weft.topology.machines.machine import Machine
from weft.topology.machines.reader import READERS, Reader
from weft.topology.rates import INFINIBAND, Rate

TITLE = "a fabric of ibnetdiscover"
_KINDS = {"S": "switch", "H": "nic", "R": "router"}
_NODE = re.compile(r'(Switch|Ca|Rt)\s+[0-9]{1,5}\s+"([SHR])-([0-9a-fA-F]{1,16})"\s*(?:#\s*"(.*)")?')
_LISTED = re.compile(r"(?:Switch|Ca|Router)\s+:\s+0x[0-9a-f]+ ports ")
_EXTERNAL = r"(?:\[ext [0-9]{1,5}\])?"
_PORT = re.compile(
    rf"\[([0-9]{{1,5}})\]{_EXTERNAL}\s*+(?:\(([0-9a-fA-F]{{1,16}})\))?"
    rf'\s*"([SHR])-([0-9a-fA-F]{{1,16}})"\[([0-9]{{1,5}})\]{_EXTERNAL}'
    r"\s*+(?:\(([0-9a-fA-F]{1,16})\))?\s*(?:#(.*))?"
)
_CALLED = re.compile(r'"(.*)"')
_RATE = re.compile(r"\s*(?:lid\s+[0-9]+)?\s*(\S*)")
_BEGINS = re.compile(
    r'^(?:(?:Switch|Ca|Rt)\s+[0-9]+\s+"[SHR]-[0-9a-fA-F]+"|(?:Switch|Ca|Router)\s+:\s+0x)',
    re.MULTILINE,
)
_PRINTED = re.compile(
    r"#|(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid)=|Chassis [0-9]|Non-Chassis|Hostname:"
)


def recognise(document: Document) -> bool:
    return bool(_BEGINS.search(document.text[:65536]))


def read(document: Document, wishes: Wishes) -> Machine:  # noqa: ARG001 - the file says all
    fabric = Fabric()
    node: Node | None = None
    strange: list[int] = []
    for line, text in enumerate(document.text.split("\n"), 1):
        text = text.strip()
        if text.startswith("["):
            _port(fabric, node, text, line)
        elif text.startswith(("Switch", "Ca", "Rt")):
            node = _node(fabric, text, line)
        elif text and not _PRINTED.match(text):
            strange.append(line)
    if strange:
        lines = counted({"line": len(strange)})
        fabric.notes.append(f"not read: {lines} that are no listing, first line {strange[0]}")
    return fabric.machine(document.path.stem, TITLE)


def _node(fabric: Fabric, text: str, line: int) -> Node:
    """The head of a block."""
    match = _NODE.match(text)
    if match is None:
        if _LISTED.match(text):
            raise PlacedError(
                "is a list of nodes without their links; expected what ibnetdiscover prints "
                "without -l, -S or -H",
                line=line,
            )
        raise PlacedError(
            f'{quoted(text)} is no node; expected one such as Ca 1 "H-0002c90300212110" # '
            '"node01 mlx5_0"',
            line=line,
        )
    _, letter, guid, called = match.groups()
    return fabric.node(_KINDS[letter], small(guid), called or "", line, whole=True)


def _port(fabric: Fabric, node: Node | None, text: str, line: int) -> None:
    """A port of a node, and where it leads."""
    match = _PORT.fullmatch(text)
    if node is None:
        raise PlacedError(
            f"port {quoted(text)} comes before any node; expected a line such as Switch 65 "
            '"S-2c5eab0300b87b40" first',
            line=line,
        )
    if match is None:
        raise PlacedError(
            f'{quoted(text)} is no link; expected one such as [1] "S-2c5eab0300b87b40"[17] # '
            '"leaf01" lid 73 4xNDR',
            line=line,
        )
    port, own, letter, guid, far, other, more = match.groups()
    more = more or ""
    called = _CALLED.search(more)
    peer_guid = small(guid)
    peer = fabric.node(_KINDS[letter], peer_guid, called[1] if called else "", line, whole=False)
    if own:
        node.ports[int(port)] = small(own)
    if other:
        peer.ports[int(far)] = small(other)
    rate = _rate(more[called.end() :] if called else more, line)
    fabric.link(node, int(port), peer, int(far), rate, line)


def _rate(text: str, line: int) -> Rate | None:
    """The rate of a link, from ``4xNDR``; None if it is not said, or not known to the tool."""
    match = _RATE.match(text)
    word = match[1] if match else ""
    if not word or "?" in word:
        return None
    lanes, _, generation = word.partition("x")
    rate = lanes_rate(int(lanes), generation) if re.fullmatch("[0-9]{1,2}", lanes) else None
    if rate is None:
        raise PlacedError(
            f"{quoted(word)} is no rate of InfiniBand; expected lanes and generation such as "
            f"4xNDR, of {', '.join(INFINIBAND)}",
            line=line,
        )
    return rate


READERS.add(
    "ibnetdiscover", Reader(name="ibnetdiscover", title=TITLE, recognise=recognise, read=read)
)
