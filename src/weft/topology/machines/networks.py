"""From a network back to a machine: for what looks at parts and cables."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

from weft.errors import InputError
from weft.topology.labels import Wishes
from weft.topology.machines.machine import Cable, Machine, Part
from weft.topology.machines.network import network_of
from weft.topology.machines.tiers import name_tiers
from weft.topology.model import Topology
from weft.topology.rates import Rate
from weft.topology.wiring import Wiring


def machine_of(topology: Topology) -> Machine:
    """The parts and cables of a network; by their names if it has some, else as NPUs and switches.

    Without names, switches are called leaf or spine by how far they are from NPUs.
    """
    machine = Machine(topology.title, "a network", notes=list(topology.notes))
    labels = topology.labels
    for node in range(topology.nodes):
        if labels is not None:
            names = labels.kinds[node], labels.names[node], labels.hosts[node]
        else:
            names = "gpu" if node < topology.npus else "switch", topology.node_name(node), ""
        machine.add(Part(*names, adds=node in topology.adding))
    for src, dst, rate, delay in zip(*(c.tolist() for c in topology.columns), strict=True):
        kinds = {machine.parts[src].kind, machine.parts[dst].kind}
        machine.cables.append(Cable(_kind(kinds), src, dst, Rate(rate, rate), latency=delay))
    if labels is None:
        name_tiers(machine, ("gpu",))
        _name_boxes(machine)
    return machine


def wiring_of(machine: Machine, wishes: Wishes) -> Wiring:
    """The parts and cables of a machine, with what a user says of its links."""
    parts, cables = machine.parts, machine.cables
    rates, delays = wishes.bandwidth or {}, wishes.latency or {}
    said = [rates.get(c.kind, (c.rate and c.rate.at(wishes.rates)) or 0) for c in cables]
    taken = (delays.get(c.kind, c.latency) for c in cables)
    return Wiring(
        kinds=tuple(part.kind for part in parts),
        names=tuple(part.name for part in parts),
        hosts=tuple(part.host for part in parts),
        ports=tuple(part.port.nominal if part.port else 0 for part in parts),
        adding=tuple(i for i, part in enumerate(parts) if part.adds),
        cables=tuple(c.kind for c in cables),
        src=tuple(c.src for c in cables),
        dst=tuple(c.dst for c in cables),
        rates=tuple(said),
        counts=tuple(c.count for c in cables),
        delays=tuple(-1 if delay is None else delay for delay in taken),
    )


def joined_of(topology: Topology) -> Machine | None:
    """What a network was joined of; None if that is not known, or is another by now."""
    wiring = topology.labels and topology.labels.wiring
    if not wiring:
        return None
    machine = Machine(topology.title, "a network", notes=list(topology.notes))
    able = set(wiring.adding)
    parts = zip(wiring.kinds, wiring.names, wiring.hosts, wiring.ports, strict=True)
    for i, (kind, name, host, port) in enumerate(parts):
        machine.add(Part(kind, name, host, port=_rate(port), adds=i in able))
    ends = zip(wiring.cables, wiring.src, wiring.dst, strict=True)
    speeds = zip(wiring.rates, wiring.counts, wiring.delays, strict=True)
    for of, (rate, count, delay) in zip(ends, speeds, strict=True):
        machine.cables.append(Cable(*of, _rate(rate), count, None if delay < 0 else delay))
    try:
        network = network_of(machine)
    except InputError:
        return None
    sizes = network.npus == topology.npus and network.switches == topology.switches
    return machine if sizes and _rows(network) == _rows(topology) else None


def _rate(rate: int) -> Rate | None:
    return Rate(rate, rate) if rate else None


def _rows(topology: Topology) -> list[tuple[int, ...]]:
    """The links in an order of their own: files may have another."""
    return sorted(zip(*(column.tolist() for column in topology.columns), strict=True))


def _kind(kinds: set[str]) -> str:
    """The kind of a cable by what it joins."""
    for kind in ("core", "spine", "leaf"):
        if kind in kinds:
            return kind
    if "nvswitch" in kinds:
        return "nvlink"
    if "pci" in kinds or kinds == {"gpu", "cpu"}:
        return "pcie"
    return "cpu" if kinds == {"cpu"} else "link"


def _name_boxes(machine: Machine) -> None:
    """Call leaves ``box`` that NPUs reach faster than others: NVSwitches beside rails."""
    rates: dict[int, Counter[int]] = defaultdict(Counter)
    for cable in machine.cables:
        if machine.parts[cable.src].kind == "gpu" and machine.parts[cable.dst].kind == "leaf":
            rates[cable.dst][cable.rate.nominal if cable.rate else 0] += 1
    usual = {leaf: counts.most_common(1)[0][0] for leaf, counts in rates.items()}
    if len(set(usual.values())) < 2:
        return
    boxes = {leaf for leaf, rate in usual.items() if rate == max(usual.values())}
    for leaf in boxes:
        machine.parts[leaf] = replace(machine.parts[leaf], kind="box")
    machine.cables = [
        replace(cable, kind="box") if {cable.src, cable.dst} & boxes else cable
        for cable in machine.cables
    ]
