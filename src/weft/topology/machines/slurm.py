"""What both of Slurm's topology files can say besides trees: rings and tori of hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from weft.quoting import quoted
from weft.topology.machines.machine import Machine, Part
from weft.topology.machines.tree import Place

BLOCKS = (
    "blocks say which hosts are near each other, not what joins them; expected a tree of switches, "
    "such as SwitchName=leaf1 Nodes=node[01-16]"
)
FLAT = "a flat topology says nothing of the network; expected a tree of switches"


@dataclass
class Grid:
    """Hosts that are linked to each other, without switches."""

    hosts: dict[str, Place] = field(default_factory=dict)
    links: list[tuple[str, str, str]] = field(default_factory=list)
    """Kind, and from which host to which."""
    parts: int = 0

    def ring(self, name: str, hosts: Sequence[str], place: Place) -> None:
        """Hosts in a ring, in this order."""
        self.torus(f"ring {quoted(name)}", (len(hosts),), hosts, place, ("ring",))

    def torus(
        self,
        name: str,
        sizes: Sequence[int],
        hosts: Sequence[str],
        place: Place,
        kinds: Sequence[str] = ("x", "y", "z"),
    ) -> None:
        """Hosts in a torus: along x first, then along y, then along z."""
        if not hosts or prod(sizes) != len(hosts):
            wanted = "x".join(map(str, sizes)) if hosts and len(sizes) > 1 else "hosts"
            raise place.wrong(f"{name} has {len(hosts)} hosts; expected {wanted}")
        for host in hosts:
            if host in self.hosts:
                raise place.wrong(f"{name} has host {quoted(host)}, which is in one already")
            self.hosts[host] = place
        self.parts += 1
        step = 1
        for kind, size in zip(kinds, sizes, strict=True):
            for i, host in enumerate(hosts):
                at = i // step % size
                # Two in a ring have one link, not one each way round.
                if at + 1 < size or size > 2:
                    self.links.append((kind, host, hosts[i + ((at + 1) % size - at) * step]))
            step *= size

    def machine(self, name: str, source: str) -> Machine:
        """The hosts in the order of the file."""
        machine = Machine(name, source)
        number = {host: machine.add(Part("host", host, host)) for host in self.hosts}
        for kind, a, b in self.links:
            machine.join(kind, number[a], number[b], None)
        if self.parts > 1:
            machine.notes.append(f"{self.parts} parts of the network that nothing joins")
        return machine
