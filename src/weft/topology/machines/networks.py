"""From a network back to a machine: for what looks at parts and cables."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

from weft.topology.machines.machine import Cable, Machine, Part
from weft.topology.machines.tiers import name_tiers
from weft.topology.model import Topology
from weft.topology.rates import Rate


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
