"""What topograph knows of a cluster: its graph, its models, and the graph of NetQ that it reads.

The graph has the switches above each host, a model a tree of switches, NetQ every cable. None of
them says how fast a link is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from weft.documents import Document, PlacedError, load_json
from weft.errors import InputError
from weft.quoting import brief, counted, quoted
from weft.topology.labels import Wishes
from weft.topology.machines.hostlist import MOST, names_of, natural
from weft.topology.machines.machine import Machine, Part
from weft.topology.machines.plain import At, called, listing, mapping, whole
from weft.topology.machines.plain import name as name_of
from weft.topology.machines.reader import READERS, Reader
from weft.topology.machines.tiers import name_tiers
from weft.topology.machines.tree import Place, Tree

TITLE = "a graph of topograph"
MODEL = "a model of topograph"
NETQ = "a topology graph of NetQ"
MAX_CABLES = 4096
"""Between two nodes of NetQ; more is no cluster."""
_GRAPH = re.compile(r'"network_layers"\s*:\s*\[')
_MODEL = re.compile(r"^switches:[ \t]*(?:#.*)?$", re.MULTILINE)
_OURS = re.compile(r"^weft\s*:", re.MULTILINE)
_NETQ = re.compile(r'"compounded_(?:links|nodes)"\s*:')
_LIST = re.compile(r'"GpuIDList"\s*:')
_DOMAIN = re.compile(r"(?:.*/domain|nvlink|.*/accelerator)")


def recognise(document: Document) -> bool:
    head = document.text[:65536]
    if head.lstrip()[:1] in ("[", "{"):
        return any(pattern.search(head) for pattern in (_GRAPH, _NETQ, _LIST))
    return bool(_MODEL.search(head)) and not _OURS.search(head)


def read(document: Document, wishes: Wishes) -> Machine:  # noqa: ARG001 - rates come later
    head, name = document.text[:65536], document.path.stem
    if head.lstrip()[:1] not in ("[", "{"):
        return _model(document.plain(), name)
    plain = load_json(document.data)
    if _GRAPH.search(head):
        return _graph(plain, name)
    if _NETQ.search(head):
        return _netq(plain, name)
    raise PlacedError(
        "is a list of the hosts of an NVLink domain, not of what joins them; expected a graph with "
        "the network_layers of each host",
        line=1,
    )


def _graph(plain: Any, name: str) -> Machine:
    """Hosts, each with the switches on its way up."""
    top = mapping(plain, (), "the file")
    at: At = ()
    if "instances" not in top and "graph" in top:
        top, at = mapping(top["graph"], ("graph",), "graph"), ("graph",)
    tree, domains = Tree(), _Domains()
    seen: set[str] = set()
    for i, item in enumerate(listing(top.get("instances"), (*at, "instances"))):
        here = (*at, "instances", i)
        instance = mapping(item, here, "an instance")
        host = called(instance, "id", here)
        if host in seen:
            raise Place(path=here).wrong(f"instance {quoted(host)} is there a second time")
        seen.add(host)
        at_layers = (*here, "network_layers")
        layers = [
            name_of(layer, (*at_layers, k), "a layer")
            for k, layer in enumerate(listing(instance.get("network_layers"), at_layers))
        ]
        if not layers:
            raise Place(path=here).wrong(
                f"instance {quoted(host)} has no network_layers; expected the switches above it"
            )
        place = Place(path=at_layers)
        for below, switch in zip([None, *layers], layers, strict=False):
            tree.switches.setdefault(switch, place)
            tree.add(switch, place, [below] if below else [], [] if below else [host])
        for key in ("attributes", "labels"):
            domains.read(instance.get(key), [host], (*here, key))
    return domains.join(tree.machine(name, TITLE))


def _model(plain: Any, name: str) -> Machine:
    """Switches with what is below them, and blocks of hosts below a switch."""
    top = mapping(plain, (), "the file")
    tree, domains = Tree(), _Domains()
    left = MOST

    def names(item: dict[str, Any], key: str, at: At) -> list[str]:
        nonlocal left
        found: list[str] = []
        for i, text in enumerate(listing(item.get(key, []), (*at, key))):
            try:
                more = names_of(name_of(text, (*at, key, i), key), left)
            except InputError as error:
                raise Place(path=(*at, key, i)).wrong(str(error)) from None
            found += more
            left -= len(more)
        return found

    for switch, item in mapping(top.get("switches"), ("switches",), "switches").items():
        at: At = ("switches", switch)
        below = mapping(item or {}, at, f"switch {quoted(switch)}")
        tree.switch(switch, Place(path=at))
        tree.add(switch, Place(path=at), names(below, "switches", at), names(below, "nodes", at))
    for i, item in enumerate(listing(top.get("blocks", []), ("blocks",))):
        at = ("blocks", i)
        block = mapping(item, at, "a block")
        switch, hosts = called(block, "switch", at), names(block, "nodes", at)
        tree.switches.setdefault(switch, Place(path=at))
        tree.add(switch, Place(path=at), hosts=hosts)
        domains.read(block.get("annotations"), hosts, (*at, "annotations"))
    for key in ("nodes", "capacity_blocks"):
        for one, item in mapping(top.get(key, {}), (key,), key).items():
            at = (key, one)
            found = mapping(item or {}, at, quoted(one))
            hosts = [one] if key == "nodes" else names(found, "nodes", at)
            domains.read(found.get("attributes"), hosts, (*at, "attributes"))
    return domains.join(tree.machine(name, MODEL))


def _netq(plain: Any, name: str) -> Machine:
    """Switches and hosts in tiers, and every cable between two of them."""
    graphs = listing(plain, ()) if isinstance(plain, list) else [plain]
    machine = Machine(name, NETQ)
    found: dict[str, tuple[str, str]] = {}
    for i, graph in enumerate(graphs):
        tiers = listing(mapping(graph, (i,), "a graph").get("nodes"), (i, "nodes"))
        for j, tier in enumerate(tiers):
            at: At = (i, "nodes", j)
            devices = mapping(tier, at, "a tier").get("compounded_nodes")
            for k, item in enumerate(listing(devices, (*at, "compounded_nodes"))):
                here = (*at, "compounded_nodes", k)
                device = mapping(item, here, "a node")
                key = called(device, "id", here)
                if key in found:
                    raise Place(path=here).wrong(f"node {quoted(key)} is there a second time")
                kind = "switch" if device.get("device_type") == "switch" else "host"
                found[key] = kind, called(device, "name", here)
    if not any(kind == "host" for kind, _ in found.values()):
        raise Place(1).wrong("no host is in it; expected switches and the hosts that they see")
    used = Counter(title for _, title in found.values())
    number: dict[str, int] = {}
    for key, (kind, title) in sorted(found.items(), key=lambda one: natural(one[1][1])):
        title = title if used[title] == 1 else key
        number[key] = machine.add(Part(kind, title, title if kind == "host" else ""))
    left = MOST
    for i, graph in enumerate(graphs):
        for j, item in enumerate(listing(graph.get("links"), (i, "links"))):
            at = (i, "links", j)
            link = mapping(item, at, "a link")
            ends = [called(link, key, at) for key in ("src", "target")]
            for end in ends:
                if end not in number or ends[0] == ends[1]:
                    raise Place(path=at).wrong(
                        f"a link leads from {quoted(ends[0])} to {quoted(ends[1])}; expected two "
                        "nodes of the file"
                    )
            size = whole(link, "size", at, min(left, MAX_CABLES))
            left -= size
            for _ in range(size):
                machine.join("link", number[ends[0]], number[ends[1]], None)
    name_tiers(machine)
    machine.notes.append(
        "no rates are in the file: what --bandwidth says is that of one cable of each kind"
    )
    return machine


class _Domains:
    """NVLink domains that hosts say they are in."""

    def __init__(self) -> None:
        self.hosts: dict[str, dict[str, None]] = {}

    def read(self, labels: Any, hosts: Iterable[str], at: At) -> None:
        """What some hosts say of themselves."""
        for key, value in mapping(labels or {}, at, "what is said of hosts").items():
            if _DOMAIN.fullmatch(key) and value:
                domain = name_of(value, (*at, key), key)
                self.hosts.setdefault(domain, {}).update(dict.fromkeys(hosts))

    def join(self, machine: Machine) -> Machine:
        """The machine with a switch for each domain of several hosts."""
        number = {machine.parts[i].name: i for i in machine.of_kind("host")}
        several = {
            domain: [number[host] for host in hosts if host in number]
            for domain, hosts in self.hosts.items()
        }
        several = {domain: hosts for domain, hosts in several.items() if len(hosts) > 1}
        for domain, hosts in several.items():
            switch = machine.add(Part("nvswitch", domain))
            for host in hosts:
                machine.join("nvlink", host, switch, None)
        if several:
            machine.notes.append(
                f"{counted({'NVLink domain': len(several)})} of several hosts, such as "
                f"{brief(next(iter(several)))}: as fast as --bandwidth nvlink=900GB/s says"
            )
        return machine


READERS.add("topograph", Reader(name="topograph", title=TITLE, recognise=recognise, read=read))
