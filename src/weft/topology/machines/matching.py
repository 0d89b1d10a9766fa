"""Which file is of which host of a fabric, and which of its adapters is which there.

A GUID tells, else names of hosts and adapters. Files that stand for several hosts are like them in
all but their GUIDs.
"""

from __future__ import annotations

import fnmatch
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from weft.errors import InputError
from weft.quoting import brief, quoted
from weft.topology.machines.hostlist import natural
from weft.topology.machines.machine import Machine


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
    path
        Where it was read.
    """

    machine: Machine
    names: str | None = None
    path: str = ""


Placed = dict[str, Machine]
"""The hosts by their name, in order."""


class Directory:
    """The hosts of a fabric and their adapters, by name and by GUID.

    Parameters
    ----------
    called
        What adapters are called in the fabric, and what the same ones are called in hosts' files.
    """

    def __init__(self, fabric: Machine, called: Mapping[str, str]) -> None:
        self.fabric = fabric
        self.adapters: dict[str, dict[str, int]] = defaultdict(dict)
        """By host, its adapters, by what hosts' files call them; without a host under ``""``."""
        self.by_id: dict[str, int] = {}
        self.bare: dict[str, int] = {}
        """Hosts of which the fabric shows no adapters, by the part that stands for each."""
        there = dict.fromkeys(fabric.parts[nic].name for nic in fabric.of_kind("nic"))
        for name in called:
            if name not in there:
                raise InputError(
                    f"{fabric.name} has no adapter {quoted(name)} that could be called "
                    f"{quoted(called[name])}; it has {some(there) or 'none'}"
                )
        for nic in fabric.of_kind("nic"):
            part = fabric.parts[nic]
            name = called.get(part.name, part.name)
            if self.adapters[part.host].setdefault(name, nic) != nic and part.host:
                raise InputError(
                    f"host {quoted(part.host)} of {fabric.name} has two adapters that would be "
                    f"called {quoted(name)}; rename both, as in A=B,B=A"
                )
            self.by_id |= dict.fromkeys(map(_guid, part.ids), nic)
        self.computing = sorted((fabric.parts[i].host for i in fabric.of_kind("host")), key=natural)
        """Hosts but those that manage the fabric, or have a name that is not theirs alone."""
        for end in fabric.of_kind("host"):
            if fabric.parts[end].host not in self.adapters:
                self.bare[fabric.parts[end].host] = end

    def placed(self, files: Sequence[HostFile]) -> Placed:
        """The hosts of the fabric that have a file, in the order of their names."""
        if not self.computing:
            raise InputError(f"{self.fabric.name}: {self.fabric.source} names no host")
        found: dict[str, tuple[bool, HostFile]] = {}
        for file in files:
            hosts = self._hosts_of(file)
            pattern = file.names is not None and file.names not in hosts
            for host in hosts:
                before, other = found.get(host, (pattern, None))
                if other is not None and before == pattern:
                    raise InputError(
                        f"two files are of host {quoted(host)}: {other.path} and {file.path}"
                    )
                if before >= pattern:  # a pattern is for hosts without a file of their own
                    found[host] = pattern, file
        return {host: found[host][1].machine for host in sorted(found, key=natural)}

    def _hosts_of(self, file: HostFile) -> Sequence[str]:
        machine, fabric = file.machine, self.fabric.name
        known = {*self.computing, *filter(None, self.adapters)}
        if file.names is not None:
            hosts = [host for host in self.computing if fnmatch.fnmatchcase(host, file.names)]
            hosts = hosts or [host for host in known if host == file.names]
            if not hosts:
                raise InputError(
                    f"{fabric} has no host {quoted(file.names)}; it has {some(self.computing)}"
                )
            return hosts
        hosts = list(dict.fromkeys(self._homes(machine).values()))
        if len(hosts) > len({part.host for part in machine.parts}):
            raise InputError(
                f"{machine.name} has adapters of {len(hosts)} hosts of {fabric}: {some(hosts)}"
            )
        hosts = hosts[:1] or [host for host in known if host == machine.name]
        if not hosts:
            raise InputError(
                f"which host of {fabric} {machine.name} is of is not known: no GUID of "
                f"its adapters is there, and no host has its name; say it as in "
                f"{self.computing[0]}={machine.name}.xml, or '*={machine.name}.xml' for all"
            )
        return hosts

    def _homes(self, machine: Machine) -> dict[tuple[str, str], str]:
        """By host of a file, and by GUID, the host of the fabric that it is there."""
        known = set(self.computing)
        return {
            (part.host, one): home
            for part in (machine.parts[nic] for nic in machine.of_kind("nic"))
            for one in map(_guid, part.ids)
            if one in self.by_id and (home := self.fabric.parts[self.by_id[one]].host) in known
        }

    def matches(self, host: str, machine: Machine) -> dict[int, list[int]]:
        """By adapter of a host's file, those in the fabric that it is: by GUID, else by name.

        A GUID that several adapters share, as those of one card do, tells the host alone; one of
        another host of the fabric tells that the file stands for hosts like it. What has no name
        there that is its host's alone is known by its GUID. Ports of one card may be adapters of
        their own in the fabric.
        """
        known, nics = set(self.computing), machine.of_kind("nic")
        several = len({part.host for part in machine.parts if part.kind == "gpu"}) > 1
        homes = {own: home for (own, _), home in self._homes(machine).items()}
        shared = Counter(one for nic in nics for one in {*map(_guid, machine.parts[nic].ids)})
        found: dict[int, list[int]] = {}
        taken: set[int] = set()
        for by_id in (True, False):
            for nic in nics:
                part = machine.parts[nic]
                home = homes.get(part.host, "") if several else host
                own = self.adapters.get(home, {}) if home else {}
                if nic in found:
                    continue
                if by_id:
                    ends = [self.by_id.get(one) for one in map(_guid, part.ids) if shared[one] == 1]
                else:
                    ends = [own.get(name) for name in (part.name, *part.name.split("+"))]
                there = [
                    end
                    for end in dict.fromkeys(ends)
                    if end is not None
                    and end not in taken
                    and (self.fabric.parts[end].host == home or self._is_open(end, known))
                ]
                if there:
                    found[nic] = there
                    taken.update(there)
        return {nic: found[nic] for nic in nics if nic in found}

    def _is_open(self, end: int, known: set[str]) -> bool:
        """Whether an adapter has no host's name that is its host's alone."""
        return self.fabric.parts[end].host not in known


def some(names: Iterable[str], most: int = 4) -> str:
    """The first names of a list."""
    each = [brief(name) for name in names]
    return ", ".join(each[:most]) + (f" and {len(each) - most} more" if len(each) > most else "")


def _guid(one: str) -> str:
    """Files differ in whether they write the zeros that a GUID begins with."""
    return one.lstrip("0")
