"""A fabric as schedulers know it: switches by name, with the hosts and switches below each.

One link stands for all cables between two of them, and nothing says how fast it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from weft.documents import PlacedError
from weft.quoting import brief, quoted
from weft.topology.machines.hostlist import natural
from weft.topology.machines.machine import Machine, Part
from weft.topology.machines.tiers import name_tiers

RATES = (
    "no rates are in the file, and one link stands for all cables between two switches: what "
    "--bandwidth says of spine is all that a leaf has up"
)


@dataclass(frozen=True)
class Place:
    """Where something stands in its file: on a line, or at a place in the tree of YAML."""

    line: int | None = None
    path: Sequence[str | int] = ()

    def wrong(self, message: str) -> PlacedError:
        return PlacedError(message, self.path, self.line)


@dataclass
class Tree:
    """Switches, and what is below them, as far as it is read."""

    switches: dict[str, Place] = field(default_factory=dict)
    below: dict[str, list[tuple[str, Place]]] = field(default_factory=dict)
    """Switches below each."""
    hosts: dict[str, dict[str, None]] = field(default_factory=dict)
    """Hosts below each."""

    def switch(self, name: str, place: Place) -> None:
        """A switch, once."""
        if name in self.switches:
            raise place.wrong(f"switch {quoted(name)} is there a second time")
        self.switches[name] = place

    def add(
        self, name: str, place: Place, switches: Iterable[str] = (), hosts: Iterable[str] = ()
    ) -> None:
        """What hangs below a switch."""
        below = self.below.setdefault(name, [])
        below += [(child, place) for child in switches]
        self.hosts.setdefault(name, {}).update(dict.fromkeys(hosts))

    def machine(self, name: str, source: str, order: Iterable[str] | None = None) -> Machine:
        """The fabric; hosts by name if no order is given."""
        self.check()
        machine = Machine(name, source)
        number = {switch: machine.add(Part("switch", switch)) for switch in self.switches}
        known = dict.fromkeys(host for hosts in self.hosts.values() for host in hosts)
        placed = {
            host: machine.add(Part("host", host, host))
            for host in (sorted(known, key=natural) if order is None else order)
        }
        for switch in self.switches:
            for host in self.hosts.get(switch, ()):
                machine.join("link", placed[host], number[switch], None)
            for child in dict.fromkeys(child for child, _ in self.below.get(switch, ())):
                machine.join("link", number[child], number[switch], None)
        name_tiers(machine)
        machine.notes.append(RATES)
        apart = self.apart()
        if len(apart) > 1:
            machine.notes.append(
                f"{len(apart)} parts of the fabric that nothing joins, below "
                f"{brief(', '.join(apart), 200)}"
            )
        return machine

    def check(self) -> None:
        """Raise if a switch is below itself, is not there, or if there are no hosts."""
        for name, children in self.below.items():
            for child, place in children:
                if child not in self.switches:
                    raise place.wrong(
                        f"switch {quoted(child)} below {quoted(name)} is not in the file; expected "
                        "every switch with what is below it"
                    )
        if not any(self.hosts.values()):
            place = next(iter(self.switches.values()), Place(1))
            raise place.wrong("no host is in it; expected switches with the hosts below them")
        done: set[str] = set()
        for top in self.switches:
            path: set[str] = set()
            waiting = [(top, False)]
            while waiting:
                name, leaving = waiting.pop()
                if leaving:
                    path.remove(name)
                    done.add(name)
                elif name in path:
                    raise self.switches[name].wrong(
                        f"switch {quoted(name)} is below itself; expected a tree"
                    )
                elif name not in done:
                    path.add(name)
                    waiting.append((name, True))
                    waiting += [(child, False) for child, _ in self.below.get(name, ())]

    def apart(self) -> list[str]:
        """The first switch of each part of the fabric that no link joins to the others."""
        root = {name: name for name in self.switches}

        def find(name: str) -> str:
            while root[name] != name:
                root[name] = name = root[root[name]]
            return name

        by_host: dict[str, str] = {}
        for name in self.switches:
            for child, _ in self.below.get(name, ()):
                root[find(child)] = find(name)
            for host in self.hosts.get(name, ()):
                root[find(by_host.setdefault(host, name))] = find(name)
        return [name for name in self.switches if find(name) == name]
