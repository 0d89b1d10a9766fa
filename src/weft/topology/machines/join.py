"""One cluster of hosts' files and the fabric between them.

An adapter of a host is found in the fabric by a GUID, else by the names of host and adapter. In
the joined machine it leads from its host's PCI switch to its leaf; all else of a host stays as its
own file has it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weft.errors import InputError
from weft.quoting import counted, quoted
from weft.topology.machines.hostlist import natural
from weft.topology.machines.infiniband import total
from weft.topology.machines.machine import Cable, Machine, Part
from weft.topology.machines.matching import Directory, HostFile, Placed, some
from weft.topology.machines.rails import rails_of
from weft.topology.machines.tiers import name_tiers
from weft.topology.model import Topology
from weft.topology.rates import Rate
from weft.units import format_bandwidth

PORT = "port"
"""The kind of the ends of a fabric that has no hosts: an adapter hangs on each."""
MAX_PARTS = 1 << 20
"""What all hosts have together: so many take some gigabytes."""


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
    adapters: Mapping[str, str] | Sequence[str] | None = None,
    count: int | None = None,
    rails: bool = False,
) -> Joined:
    """One machine of hosts and the fabric between them.

    Parameters
    ----------
    adapters
        What adapters are called in the fabric, and what the same ones are called in hosts' files;
        for a fabric without hosts, the adapters that hang on it, in order.
    count
        How many hosts there must be; for a fabric without hosts, how many there are.
    rails
        For a fabric without hosts: its ports go to the first adapter of each host, then to the
        second of each; not to all adapters of a host, then to those of the next.
    """
    for file in hosts:
        _check_host(file)
    if fabric.of_kind(PORT):
        if isinstance(adapters, Mapping):
            raise InputError(
                f"{fabric.name} has no names of adapters; --adapters says which of the hosts' "
                "files hang on it, as in mlx5_0,mlx5_1"
            )
        return _Joining(name, fabric).by_ports(hosts, count, adapters, rails=rails)
    if rails:
        raise InputError(
            f"{fabric.name} says what hangs where; rails are for a fabric without hosts"
        )
    if adapters is not None and not isinstance(adapters, Mapping):
        raise InputError(
            f"{fabric.name} names adapters; --adapters says what hosts' files call them, as in "
            "HCA-1=mlx5_0"
        )
    directory = Directory(fabric, adapters or {})
    _check_known(adapters or {}, hosts)
    placed = directory.placed(hosts)
    if count is not None and len(placed) != count:
        raise InputError(
            f"{fabric.name} has {len(placed)} hosts that the files are of, not {count}: "
            f"{some(placed)}"
        )
    return _Joining(name, fabric).by_names(placed, directory)


def _check_host(file: HostFile) -> None:
    """Raise if what is no host, such as a fabric, is given as one."""
    machine = file.machine
    for kind, what in (("gpu", "GPU"), ("nic", "adapter to join a fabric by")):
        if not machine.of_kind(kind):
            raise InputError(
                f"{file.path}: {machine.source} has no {what}; expected the file of a host that "
                "names its adapters, such as an NCCL topology dump"
            )


def _check_known(called: Mapping[str, str], hosts: Iterable[HostFile]) -> None:
    """Raise if adapters are to be called as none is in the hosts' files."""
    machines = [file.machine for file in hosts]
    names = dict.fromkeys(m.parts[nic].name for m in machines for nic in m.of_kind("nic"))
    known = {*names, *(port for name in names for port in name.split("+"))}
    for name in called.values():
        if name not in known:
            raise InputError(f"no file has an adapter {quoted(name)}; they have {some(names)}")


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


@dataclass
class _Joining:
    """A cluster being put together."""

    name: str
    fabric: Machine
    machine: Machine = field(init=False)
    adapters: int = 0
    """How many adapters of hosts are joined to the fabric."""
    used: set[int] = field(default_factory=set)
    """What stands for them there."""
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

    # The fabric has hosts and adapters.

    def by_names(self, placed: Placed, directory: Directory) -> Joined:
        """Join hosts to a fabric whose adapters, or at least hosts, have names."""
        switches = self._fabric(leaving=("nic", "host"))
        for host, machine in placed.items():
            first = self._host(host, machine)
            nics = machine.of_kind("nic")
            if host in directory.bare:
                matches = {nic: [directory.bare[host]] for nic in nics}
            else:
                matches = directory.matches(host, machine)
            for nic in nics:
                if nic in matches:
                    self._plug(machine.parts[nic], first + nic, matches[nic], switches)
                else:
                    self.silent[machine.parts[nic].name].append(host)
            for name, nic in directory.adapters[host].items() if host in directory.adapters else ():
                if nic not in self.used:
                    self.strange[name].append(host)
        if not self.adapters:
            there = dict.fromkeys(name for host in placed for name in directory.adapters[host])
            here = dict.fromkeys(
                machine.parts[nic].name
                for machine in placed.values()
                for nic in machine.of_kind("nic")
            )
            raise InputError(
                f"no adapter of the hosts' files is in {self.fabric.name}: there they are called "
                f"{some(there)}, in the files {some(here)}; say which is which, as in "
                f"--adapters {next(iter(there), 'HCA-1')}={next(iter(here), 'mlx5_0')}"
            )
        reached = {self.fabric.parts[end].host for end in self.used}
        self._note_left_out(set(directory.computing) - set(placed) - reached)
        nameless = sum(not self.fabric.parts[end].host for end in self.used)
        if nameless:
            self.machine.notes.append(
                f"{counted({'adapter': nameless})} without a host in the fabric are known by their "
                "GUIDs, and joined"
            )
        return self._joined()

    # The fabric is a network whose NPUs are ports.

    def by_ports(
        self,
        files: Sequence[HostFile],
        count: int | None,
        adapters: Sequence[str] | None,
        *,
        rails: bool,
    ) -> Joined:
        """Join hosts to a fabric without names: their adapters hang on its ports in order."""
        if len(files) > 1 and count is not None:
            raise InputError("a count is for one file; several files are one host each")
        if any(file.names for file in files):
            raise InputError(f"{self.fabric.name} has no names of hosts; give files without")
        chosen = [self._chosen(file.machine, adapters) for file in files]
        ports = self._ports(chosen, count)
        machines = [file.machine for file in files] * (count or 1)
        nics = chosen * (count or 1)
        switches = self._fabric(leaving=(PORT,))
        width = len(str(len(machines) - 1))
        names = [f"host{i:0{width}}" for i in range(len(machines))]
        firsts = [self._host(*host) for host in zip(names, machines, strict=True)]
        order = [
            (i if rails else 0, host, i, nic)
            for host, own in enumerate(nics)
            for i, nic in enumerate(own)
        ]
        for port, (_, host, _, nic) in zip(ports, sorted(order), strict=True):
            self._plug(machines[host].parts[nic], firsts[host] + nic, [port], switches)
        return self._joined()

    def _ports(self, chosen: Sequence[Sequence[int]], count: int | None) -> list[int]:
        """The ports of the fabric: as many as adapters are chosen, each on a switch."""
        ports, hosts = self.fabric.of_kind(PORT), len(chosen) * (count or 1)
        number = sum(map(len, chosen)) * (count or 1)
        if not number:
            raise InputError(f"no adapter is chosen to hang on {self.fabric.name}")
        for port in ports:
            ends = [self.fabric.parts[c.dst].kind for c in self.cables[port] if c.src == port]
            if not ends or PORT in ends:
                raise InputError(
                    f"hosts hang on switches, but in {self.fabric.name} NPU {port} "
                    f"{'is joined to other NPUs' if ends else 'hangs on none'}; expected a network "
                    f"such as switch:{number}"
                )
        if number != len(ports):
            each = len(chosen[0])
            if len(chosen) == 1 and count is None and len(ports) % each == 0:
                fits = f"; --count {len(ports) // each} would fill it"
            else:
                fits = f"; switch:{number} would fit {counted({'host': hosts})}"
            raise InputError(
                f"{self.fabric.name} has {len(ports)} ports, one for each NPU of that network, "
                f"but {counted({'host': hosts})} with {counted({'adapter': number})} "
                f"{'is' if hosts == 1 else 'are'} to hang on it{fits}"
            )
        return ports

    def _chosen(self, machine: Machine, adapters: Sequence[str] | None) -> list[int]:
        """The adapters of a host that hang on the fabric, in order."""
        nics = {machine.parts[nic].name: nic for nic in machine.of_kind("nic")}
        for name in adapters or ():
            if name not in nics:
                raise InputError(
                    f"{machine.name} has no adapter {quoted(name)}; it has {some(nics) or 'none'}"
                )
        if adapters is None:
            return list(nics.values())
        left = [name for name in nics if name not in adapters]
        note = f"left out: {some(left)} of {machine.name}, which --adapters does not name"
        if left and note not in self.machine.notes:
            self.machine.notes.append(note)
        return [nics[name] for name in adapters]

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
        first = len(self.machine.parts)
        if first + len(machine.parts) > MAX_PARTS:
            raise InputError(
                f"with all hosts the cluster has more than {MAX_PARTS} parts, the most Weft joins"
            )
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
        self, part: Part, number: int, ends: Sequence[int], switches: Mapping[int, int]
    ) -> None:
        """The cables of an adapter, from what stands for it in the fabric."""
        host = self.machine.parts[number].host
        on = self.leaves[host].setdefault(part.name, set())
        self.used.update(ends)
        self.adapters += 1
        cables = [cable for end in ends for cable in self.cables[end]]
        up = [cable for cable in cables if cable.dst in switches]  # not to its host
        down = [cable for cable in cables if cable.src in switches]
        on.update(switches[cable.dst] for cable in up)
        port, there = part.port, total([cable.rate for cable in up])
        lower = port if up and port and (there is None or port.nominal < there.nominal) else None
        if port and there and port.nominal != there.nominal:
            self.slower[part.name, port.nominal, there.nominal].append(host)
        for cable in (*up, *down):
            src, dst = switches.get(cable.src, number), switches.get(cable.dst, number)
            rate = lower.over(len(up)) if lower else cable.rate
            self.machine.cables.append(replace(cable, src=src, dst=dst, rate=rate))

    def _note_left_out(self, hosts: Iterable[str]) -> None:
        names = sorted(hosts, key=natural)
        if names:
            adapters = sum(
                self.fabric.parts[nic].host in set(names) for nic in self.fabric.of_kind("nic")
            )
            what = counted({"host": len(names)})
            self.machine.notes.append(
                f"left out: {what} of the fabric without a file, with "
                f"{counted({'adapter': adapters})}: {some(names)}"
            )

    def _joined(self) -> Joined:
        machine = self.machine
        hosts = list(dict.fromkeys(machine.parts[gpu].host for gpu in machine.of_kind("gpu")))
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
                host: {name: sorted(leaves) for name, leaves in adapters.items() if leaves}
                for host, adapters in self.leaves.items()
            }
        )
        for stray in strays:
            leaf = machine.parts[stray.leaf % nodes]
            machine.doubts.append(
                f"{stray.adapter} of {stray.host} hangs on {leaf.described}, a leaf of "
                f"{' and '.join(stray.rail)}"
            )
        names = tuple(sorted((" and ".join(rail) for rail in rails), key=natural))
        return Joined(machine, tuple(hosts), self.adapters, names)

    def _unlike(self, hosts: list[str]) -> list[str]:
        """Which hosts have other adapters in the fabric, or other GPUs, than most."""
        gpus = Counter(self.machine.parts[gpu].host for gpu in self.machine.of_kind("gpu"))
        kinds: dict[tuple[int, tuple[str, ...]], list[str]] = defaultdict(list)
        for host in hosts:
            adapters = tuple(sorted(self.leaves.get(host, ()), key=natural))
            kinds[gpus[host], adapters].append(host)
        (number, usual), alike = max(kinds.items(), key=lambda kind: len(kind[1]))
        said = []
        for (own, names), unlike in kinds.items():
            lost = [name for name in usual if name not in names]
            more = [name for name in names if name not in usual]
            how = [
                *([counted({"GPU": own})] if own != number else ()),
                *([f"without {some(lost)} in the fabric"] if lost else ()),
                *([f"with {some(more)} in the fabric"] if more else ()),
            ]
            if how:
                said.append(f"unlike {_hosts(alike)}: {some(unlike, 32)}: {', '.join(how)}")
        return said


def _hosts(names: Sequence[str]) -> str:
    """Hosts in a sentence: all by name if they are few."""
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} hosts, such as {names[0]}"
