"""One cluster of hosts' files and the fabric between them.

An adapter of a host is found in the fabric by a GUID, else by the names of host and adapter. In
the joined machine it leads from its host's PCI switch to its leaf; all else of a host stays as its
own file has it.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weft.errors import InputError
from weft.quoting import brief, counted, quoted
from weft.topology.machines.machine import Cable, Machine, Part
from weft.topology.machines.rails import rails_of
from weft.topology.machines.tiers import name_tiers
from weft.topology.model import Topology
from weft.topology.rates import Rate
from weft.units import format_bandwidth

PORT = "port"
"""The kind of the ends of a fabric that has no hosts: an adapter hangs on each."""


@dataclass(frozen=True)
class HostFile:
    """What is in a host, and which hosts of the fabric are like that.

    Attributes
    ----------
    machine
        The host, as its file describes it.
    names
        The host's name in the fabric, or a pattern such as ``dgx-*`` for several; None if only
        GUIDs, or its file's name, tell which host it is.
    """

    machine: Machine
    names: str | None = None


@dataclass(frozen=True)
class Joined:
    """A cluster, and how it was put together.

    Attributes
    ----------
    machine
        All hosts and the fabric; its notes say what was left out and where files disagree.
    hosts
        Names of the hosts, in the order of their GPUs.
    adapters
        How many adapters join hosts and fabric.
    rails
        The names of adapters that make a rail each: no leaf has adapters of two of them.
    """

    machine: Machine
    hosts: tuple[str, ...]
    adapters: int
    rails: tuple[str, ...]


def join(
    name: str,
    hosts: Sequence[HostFile],
    fabric: Machine,
    *,
    adapters: Mapping[str, str] | None = None,
    count: int | None = None,
    rails: bool = False,
) -> Joined:
    """One machine of hosts and the fabric between them.

    Parameters
    ----------
    adapters
        What adapters are called in the fabric, and what the same ones are called in hosts' files.
    count
        How many hosts there must be; for a fabric without hosts, how many there are.
    rails
        For a fabric without hosts: its ports go to the first adapter of each host, then to the
        second of each; not to all adapters of a host, then to those of the next.
    """
    if fabric.of_kind(PORT):
        return _Joining(name, fabric, {}).by_ports(hosts, count, rails=rails)
    if rails:
        raise InputError(
            f"{fabric.name} says what hangs where; rails are for a fabric without hosts"
        )
    joining = _Joining(name, fabric, adapters or {})
    placed = joining.placed(hosts)
    if count is not None and len(placed) != count:
        raise InputError(
            f"{fabric.name} has {len(placed)} hosts that the files are of, not {count}: "
            f"{_some(placed)}"
        )
    return joining.by_names(placed)


def ports_of(topology: Topology) -> Machine:
    """A network as a fabric: an adapter of a host will hang on each of its NPUs."""
    machine = Machine(topology.title, "a network")
    for node in range(topology.nodes):
        kind = PORT if node < topology.npus else "switch"
        adds = node in topology.adding
        machine.add(Part(kind, topology.node_name(node), adds=adds))
    for src, dst, rate, delay in zip(*(c.tolist() for c in topology.columns), strict=True):
        machine.cables.append(Cable("link", src, dst, Rate(rate, rate), latency=delay))
    name_tiers(machine, (PORT,))
    return machine


Placed = dict[str, Machine]
"""The hosts by their name, in order."""


@dataclass
class _Joining:
    """A cluster being put together."""

    name: str
    fabric: Machine
    adapters: Mapping[str, str]
    machine: Machine = field(init=False)
    used: dict[int, str] = field(default_factory=dict)
    """Adapters of the fabric that are a host's, and what its file calls them."""
    leaves: dict[str, dict[str, set[int]]] = field(default_factory=lambda: defaultdict(dict))
    """By host and adapter, the switches it hangs on."""
    silent: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Adapters of hosts that the fabric does not show, with the hosts."""
    strange: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Adapters that the fabric shows and the hosts' files do not, with the hosts."""
    slower: dict[tuple[str, int, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    """Adapters whose rates differ: name, rate in the host's file, rate in the fabric."""

    def __post_init__(self) -> None:
        self.machine = Machine(self.name, "a cluster of several files")
        self.cables = defaultdict[int, list[Cable]](list)
        for cable in self.fabric.cables:
            for end in {cable.src, cable.dst}:
                self.cables[end].append(cable)

    # Which file is of which host of the fabric.

    def placed(self, files: Sequence[HostFile]) -> Placed:
        """The hosts of the fabric that have a file, in the order of their names."""
        known = dict.fromkeys(self.fabric.parts[nic].host for nic in self.fabric.of_kind("nic"))
        names = sorted((host for host in known if host), key=_natural)
        if not names:
            raise InputError(f"{self.fabric.name}: {self.fabric.source} names no host")
        by_guid = {
            one: self.fabric.parts[nic].host
            for nic in self.fabric.of_kind("nic")
            for one in self.fabric.parts[nic].ids
        }
        found: Placed = {}
        for file in files:
            for host in self._hosts_of(file, names, by_guid):
                if host in found:
                    raise InputError(
                        f"two files are of host {quoted(host)}: {found[host].name} and "
                        f"{file.machine.name}"
                    )
                found[host] = file.machine
        return {host: found[host] for host in names if host in found}

    def _hosts_of(
        self, file: HostFile, names: list[str], by_guid: Mapping[str, str]
    ) -> Iterable[str]:
        machine = file.machine
        if file.names is not None:
            hosts = [host for host in names if fnmatch.fnmatchcase(host, file.names)]
            if not hosts:
                raise InputError(
                    f"{self.fabric.name} has no host {quoted(file.names)}; it has {_some(names)}"
                )
            return hosts
        ids = (one for nic in machine.of_kind("nic") for one in machine.parts[nic].ids)
        hosts = list(dict.fromkeys(by_guid[one] for one in ids if by_guid.get(one)))
        if len(hosts) > len({part.host for part in machine.parts}):
            raise InputError(
                f"{machine.name} has adapters of {len(hosts)} hosts of {self.fabric.name}: "
                f"{_some(hosts)}"
            )
        hosts = hosts[:1] or [host for host in names if host == machine.name]
        if not hosts:
            raise InputError(
                f"which host of {self.fabric.name} {machine.name} is of is not known: no GUID of "
                f"its adapters is there, and no host has its name; say it as in "
                f"{names[0]}={machine.name}.xml, or '*={machine.name}.xml' for all"
            )
        return hosts

    # The fabric has hosts and adapters.

    def by_names(self, placed: Placed) -> Joined:
        """Join hosts to a fabric whose adapters have names."""
        switches = self._fabric(leaving=("nic", "host"))
        own: dict[str, dict[str, int]] = defaultdict(dict)
        guids: dict[str, int] = {}
        for nic in self.fabric.of_kind("nic"):
            part = self.fabric.parts[nic]
            own[part.host][self.adapters.get(part.name, part.name)] = nic
            guids |= dict.fromkeys(part.ids, nic)
        shared = Counter(id(machine) for machine in placed.values())
        for host, machine in placed.items():
            first = self._host(host, machine)
            for nic in machine.of_kind("nic"):
                part = machine.parts[nic]
                ids = part.ids if shared[id(machine)] == 1 else ()
                by_id = (guids[one] for one in ids if one in guids)
                match = next(by_id, own[host].get(part.name))
                if match is None or match in self.used:
                    self.silent[part.name].append(host)
                    continue
                self.used[match] = part.name
                self._plug(host, part, first + nic, match, switches)
            for name, nic in own[host].items():
                if nic not in self.used:
                    self.strange[name].append(host)
        if not self.used:
            there = dict.fromkeys(name for host in placed for name in own[host])
            here = dict.fromkeys(
                machine.parts[nic].name
                for machine in placed.values()
                for nic in machine.of_kind("nic")
            )
            raise InputError(
                f"no adapter of the hosts' files is in {self.fabric.name}: there they are called "
                f"{_some(there)}, in the files {_some(here)}; say which is which, as in "
                f"--adapters {next(iter(there), 'HCA-1')}={next(iter(here), 'mlx5_0')}"
            )
        reached = {self.fabric.parts[nic].host for nic in self.used}
        self._note_left_out(set(own) - set(placed) - reached - {""})
        return self._joined(list(placed))

    # The fabric is a network whose NPUs are ports.

    def by_ports(self, files: Sequence[HostFile], count: int | None, *, rails: bool) -> Joined:
        """Join hosts to a fabric without names: their adapters hang on its ports in order."""
        if len(files) > 1 and count is not None:
            raise InputError("a count is for one file; several files are one host each")
        machines = [file.machine for file in files] * (count or 1)
        if any(file.names for file in files):
            raise InputError(f"{self.fabric.name} has no names of hosts; give files without")
        ports = self.fabric.of_kind(PORT)
        adapters = sum(len(machine.of_kind("nic")) for machine in machines)
        if adapters != len(ports):
            raise InputError(
                f"{self.fabric.name} has {len(ports)} ports, one for each NPU of that network, "
                f"but {counted({'host': len(machines)})} have {counted({'adapter': adapters})}"
            )
        switches = self._fabric(leaving=(PORT,))
        width = len(str(len(machines) - 1))
        names = [f"host{i:0{width}}" for i in range(len(machines))]
        firsts = [self._host(*host) for host in zip(names, machines, strict=True)]
        order = [
            (i if rails else 0, host, nic)
            for host, machine in enumerate(machines)
            for i, nic in enumerate(machine.of_kind("nic"))
        ]
        for port, (_, host, nic) in zip(ports, sorted(order), strict=True):
            part = machines[host].parts[nic]
            self.used[port] = part.name
            self._plug(names[host], part, firsts[host] + nic, port, switches)
        return self._joined(names)

    # What both do.

    def _fabric(self, leaving: tuple[str, ...]) -> dict[int, int]:
        """Take over the switches, and what joins them; gives their new numbers."""
        stay = [i for i, part in enumerate(self.fabric.parts) if part.kind not in leaving]
        self.switches = [self.fabric.parts[i] for i in stay]
        moved = {old: new - len(stay) for new, old in enumerate(stay)}  # placed behind the hosts
        for cable in self.fabric.cables:
            if cable.src in moved and cable.dst in moved:
                self.machine.cables.append(
                    replace(cable, src=moved[cable.src], dst=moved[cable.dst])
                )
        self.machine.notes += self.fabric.notes
        self.machine.doubts += self.fabric.doubts
        return moved

    def _host(self, host: str, machine: Machine) -> int:
        """Take over a host; gives the new number of its first part."""
        if not machine.of_kind("nic"):
            raise InputError(f"{machine.name}: {machine.source} has no adapter to join a fabric by")
        first = len(self.machine.parts)
        self.machine.parts += machine.of_host(host).parts
        self.machine.cables += [
            replace(cable, src=first + cable.src, dst=first + cable.dst) for cable in machine.cables
        ]
        for notes, own in (
            (self.machine.notes, machine.notes),
            (self.machine.doubts, machine.doubts),
        ):
            said = (f"{machine.name}: {note}" for note in own)
            notes += [note for note in said if note not in notes]
        return first

    def _plug(
        self, host: str, part: Part, number: int, end: int, switches: Mapping[int, int]
    ) -> None:
        """The cables of an adapter, from what stands for it in the fabric."""
        on = self.leaves[host].setdefault(part.name, set())
        for cable in self.cables[end]:
            out = cable.src == end
            other = cable.dst if out else cable.src
            if other not in switches:
                continue  # to the part that stands for its host
            on.add(switches[other])
            rate = cable.rate
            if rate is None:
                rate = part.port
            elif part.port is not None and part.port.nominal != rate.nominal:
                if out:
                    pair = part.name, part.port.nominal, rate.nominal
                    self.slower[pair].append(host)
                rate = min(rate, part.port, key=lambda one: one.nominal)
            ends = (number, switches[other]) if out else (switches[other], number)
            self.machine.cables.append(replace(cable, src=ends[0], dst=ends[1], rate=rate))

    def _note_left_out(self, hosts: Iterable[str]) -> None:
        names = sorted(hosts, key=_natural)
        if names:
            adapters = sum(
                self.fabric.parts[nic].host in set(names) for nic in self.fabric.of_kind("nic")
            )
            what = counted({"host": len(names)})
            self.machine.notes.append(
                f"left out: {what} of the fabric without a file, with "
                f"{counted({'adapter': adapters})}: {_some(names)}"
            )

    def _joined(self, hosts: list[str]) -> Joined:
        machine = self.machine
        nodes = len(machine.parts) + len(self.switches)
        machine.parts += self.switches
        machine.cables = [  # switches were numbered from the end
            replace(cable, src=cable.src % nodes, dst=cable.dst % nodes) for cable in machine.cables
        ]
        notes = machine.notes
        for name, where in self.silent.items():
            notes.append(f"{name} of {_hosts(where)} is not in the fabric, and carries nothing")
        for name, where in self.strange.items():
            notes.append(f"{name} of {_hosts(where)} is in the fabric, but not in the host's file")
        for (name, here, there), where in self.slower.items():
            notes.append(
                f"{name} of {_hosts(where)} has {format_bandwidth(here)} in the host's file and "
                f"{format_bandwidth(there)} in the fabric: the lower counts"
            )
        notes += self._unlike(hosts)
        rails, strays = rails_of(
            {
                host: {name: sorted(leaves) for name, leaves in adapters.items()}
                for host, adapters in self.leaves.items()
            }
        )
        for stray in strays:
            leaf = machine.parts[stray.leaf % nodes]
            machine.doubts.append(
                f"{stray.adapter} of {stray.host} hangs on {leaf.described}, a leaf of "
                f"{' and '.join(stray.rail)}"
            )
        names = tuple(sorted((" and ".join(rail) for rail in rails), key=_natural))
        return Joined(machine, tuple(hosts), len(self.used), names)

    def _unlike(self, hosts: list[str]) -> list[str]:
        """Which hosts have other adapters in the fabric than most."""
        kinds: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for host in hosts:
            kinds[tuple(sorted(self.leaves[host], key=_natural))].append(host)
        usual, alike = max(kinds.items(), key=lambda kind: len(kind[1]))
        said = []
        for names, some in kinds.items():
            lost = [name for name in usual if name not in names]
            more = [name for name in names if name not in usual]
            if names != usual:
                how = " and ".join(
                    f"{word} {_some(which)}"
                    for word, which in (("without", lost), ("with", more))
                    if which
                )
                said.append(f"unlike {_hosts(alike)}: {_hosts(some)}, {how} in the fabric")
        return said


def _hosts(names: Sequence[str]) -> str:
    """Hosts in a sentence: all by name if they are few."""
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} hosts, such as {names[0]}"


def _some(names: Iterable[str]) -> str:
    """The first names of a list."""
    each = [brief(name) for name in names]
    return ", ".join(each[:4]) + (f" and {len(each) - 4} more" if len(each) > 4 else "")


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """The order in which people list names with numbers in them: c2 before c10."""
    pieces = re.findall(r"[0-9]+|[^0-9]+", name)
    return tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in pieces)
