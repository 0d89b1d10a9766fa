"""Machines with one fault each: something that is gone, or an attribute that is."""

from __future__ import annotations

import copy
import random
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from tests import examples
from tests.topology.machines.hosts import Fabric
from weft import health
from weft.api import bound
from weft.errors import WeftError
from weft.topology import Topology
from weft.topology.load import as_topology

T = TypeVar("T")
NOISE = 1.005
"""How much the bounds of one network differ with the order of its NPUs."""


@dataclass(frozen=True)
class Fault:
    """A machine that lacks something.

    Attributes
    ----------
    what
        What is wrong with it.
    about
        Words of which a finding that names the fault has at least one.
    made
        The text of a file, or a network.
    """

    what: str
    about: tuple[str, ...]
    made: str | Topology


def some(faults: Sequence[T], count: int, seed: int) -> list[T]:
    """So many of them, or more if more examples are asked for."""
    number = min(len(faults), count * examples.factor)
    return random.Random(seed).sample(list(faults), number)


def of_xml(text: str) -> list[Fault]:
    """Each element of an NCCL topology gone, and each attribute."""
    whole = ET.fromstring(text)
    found = []
    for i, element in enumerate(whole.iter()):
        above = {child: parent for parent in whole.iter() for child in parent}
        about, at = [], element
        while at is not whole:
            words = {"pci": "busid", "net": "name"}.get(at.tag)
            about += [at.get(words, "")] if words else []
            about += [f"cpu {at.get('numaid')}", "host"] if at.tag == "cpu" else []
            at = above[at]
        about += [below.get("busid", "") for below in element.iter() if below.tag == "pci"]
        for gone in (None, *sorted(element.attrib)):
            root = copy.deepcopy(whole)
            same = list(root.iter())[i]
            if gone is not None:
                del same.attrib[gone]
            elif element is whole:
                continue
            else:
                {child: parent for parent in root.iter() for child in parent}[same].remove(same)
            what = f"<{element.tag} {about[0] if about else ''}> {gone or 'itself'}"
            found.append(Fault(what, tuple(filter(None, about)), ET.tostring(root, "unicode")))
    return found


def of_fabric(fabric: Fabric) -> list[Fault]:
    """Each cable of a fabric gone, or at half its rate."""
    found = []
    for (host, nic), leaf in fabric.plugs.items():
        plugs = {plug: end for plug, end in fabric.plugs.items() if plug != (host, nic)}
        slow = {**fabric.rates, (host, nic): "4xHDR"}
        found += [
            Fault(f"{nic} of {host} gone", (host,), replace(fabric, plugs=plugs).text),
            Fault(f"{nic} of {host} slow", (nic, leaf), replace(fabric, rates=slow).text),
        ]
    for (leaf, spine), count in fabric.ups.items():
        ups = {**fabric.ups, (leaf, spine): count - 1}
        found.append(Fault(f"{leaf} to {spine}", (leaf,), replace(fabric, ups=ups).text))
    return found


def of_network(network: Topology) -> Iterator[Fault]:
    """Each link of a network gone both ways, gone one way, and at half its rate."""
    labels = network.labels
    for link in range(network.links):
        ends = int(network.src[link]), int(network.dst[link])
        back = np.flatnonzero((network.src == ends[1]) & (network.dst == ends[0]))
        both = np.isin(np.arange(network.links), [link, *back])
        one = np.arange(network.links) == link
        rate = network.bandwidth
        about = tuple(
            word
            for end in ends
            for word in (
                (labels.names[end], labels.hosts[end] or labels.names[end])
                if labels
                else (network.node_name(end),)
            )
        )
        where = " > ".join(about)
        yield Fault(f"{where} gone", about, _without(network, ~both, rate))
        yield Fault(f"{where} gone one way", about, _without(network, ~one, rate))
        yield Fault(f"{where} slow", about, _without(network, rate > 0, rate // (1 + both)))


def _without(network: Topology, kept: np.ndarray, rate: np.ndarray) -> Topology:
    """Some links of a network, and of these the rates."""
    made = Topology.from_links(
        network.name,
        network.npus,
        network.src[kept].tolist(),
        network.dst[kept].tolist(),
        rate[kept].tolist(),
        network.latency[kept].tolist(),
        switches=network.switches,
    )
    able = sorted(network.adding)
    made = made.with_switches(copying=able, adding=able) if able else made
    return replace(made, labels=network.labels)


def bounds(network: Topology | Path) -> list[float]:
    """What All-Reduce and All-to-All take at least."""
    network = as_topology(network)
    return [bound(network, kind, "1GiB").ideal for kind in ("all-reduce", "all-to-all")]


def verdict(fault: Fault, healthy: Topology | Path, path: Path) -> str:
    """Whether a fault is refused, named, or harmless; otherwise it is missed."""
    named = isinstance(healthy, Topology)
    before = health.check_topology(healthy) if named else health.check(healthy)
    try:
        if isinstance(fault.made, Topology):
            found = health.check_topology(fault.made)
        else:
            path.write_text(fault.made)
            found = health.check(path)
    except WeftError as error:
        return "refused" if "\n" not in str(error) else "refused in many lines"
    known = {one.text for one in before.findings}
    texts = [one.text for one in found.findings if one.text not in known]
    if any(word in text for text in texts for word in fault.about):
        return "named"
    if found.npus < before.npus:
        return "smaller"
    try:
        worse = bounds(fault.made if isinstance(fault.made, Topology) else path)
    except WeftError:
        return "missed"
    pairs = zip(worse, bounds(healthy), strict=True)
    return "harmless" if all(now <= then * NOISE for now, then in pairs) else "missed"
