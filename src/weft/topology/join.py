"""From files of hosts and of the fabric between them to one network: ``weft topo join``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.errors import InputError
from weft.quoting import quoted
from weft.topology.files import read_machine, read_topology
from weft.topology.labels import Wishes
from weft.topology.load import is_path, load_topology, wishes_by_kind
from weft.topology.machines import Machine, network_of
from weft.topology.machines.join import Joined, join, ports_of
from weft.topology.machines.matching import HostFile
from weft.topology.machines.networks import wiring_of
from weft.topology.model import Topology


@dataclass(frozen=True)
class Cluster:
    """A network joined of several files.

    Attributes
    ----------
    topology
        Its notes say what was left out, and where the files disagree.
    joined
        The hosts, and how they were joined.
    """

    topology: Topology
    joined: Joined

    def to_dict(self) -> dict[str, Any]:
        """What was joined: what ``weft topo join --json`` prints."""
        return {
            "topology": self.topology.name,
            "hosts": list(self.joined.hosts),
            "npus": self.topology.npus,
            "switches": self.topology.switches,
            "links": self.topology.links,
            "adapters": self.joined.adapters,
            "rails": list(self.joined.rails),
            "notes": list(self.topology.notes),
        }

    def rows(self) -> list[tuple[str, str]]:
        """The same for people."""
        return [
            ("hosts", str(len(self.joined.hosts))),
            ("NPUs", str(self.topology.npus)),
            ("switches", str(self.topology.switches)),
            ("directed links", str(self.topology.links)),
            ("adapters", str(self.joined.adapters)),
            (
                "rails",
                ", ".join(self.joined.rails) or "none: adapters of different names share leaves",
            ),
        ]


def join_files(
    hosts: Sequence[str | os.PathLike[str]],
    fabric: str | os.PathLike[str],
    *,
    name: str = "cluster",
    count: int | None = None,
    rails: bool = False,
    adapters: str | Mapping[str, str] | Sequence[str] | None = None,
    nvlink: str | None = None,
    bandwidth: str | None = None,
    latency: str | None = None,
    rates: str = "nominal",
) -> Cluster:
    """Join hosts and the fabric between them.

    Parameters
    ----------
    hosts
        Files of one host each; ``dgx-*=dgx.xml`` is one for all hosts of such names.
    fabric
        A file that names adapters, such as what ``ibnetdiscover`` prints; or a network, by file or
        by spec, on whose NPUs the adapters hang in order.
    count
        How many hosts there are; for one file and a fabric without names.
    rails
        Whether the ports of a fabric without names go to the first adapter of each host, then to
        the second of each; not to all of a host, then to those of the next.
    adapters
        What adapters are called in the fabric and in the files: ``HCA-1=mlx5_0,HCA-2=mlx5_1``. For
        a fabric without names, those that hang on it, in order: ``mlx5_0,mlx5_1``.
    nvlink, bandwidth, latency, rates
        What the files do not say, as in `load_topology`; rates and times by kind of link.
    """
    wishes = wishes_by_kind(bandwidth, latency, nvlink, rates)
    if count is not None and count < 1:
        raise InputError(f"a cluster of {count} hosts is none; expected 1 or more")
    files = [_host(host, wishes) for host in hosts]
    which = _adapters(adapters) if isinstance(adapters, str) else adapters
    joined = join(name, files, _fabric(fabric, wishes), adapters=which, count=count, rails=rails)
    topology = network_of(joined.machine, wishes)
    if topology.labels is not None:
        wiring = wiring_of(joined.machine, wishes)
        topology = replace(topology, labels=replace(topology.labels, wiring=wiring))
    return Cluster(topology, joined)


def _host(text: str | os.PathLike[str], wishes: Wishes) -> HostFile:
    """From ``dgx-*=dgx.xml``, or a path alone."""
    names, path = None, Path(text)
    if isinstance(text, str) and "=" in text and not path.exists():
        names, _, rest = text.partition("=")
        path = Path(rest)
    machine = read_machine(path, wishes)
    if machine is None:
        read_topology(path)  # which says what is wrong with it, if it is none
        raise InputError(
            f"{path} is a network, not the file of a host; expected one that names adapters, such "
            "as an NCCL topology dump"
        )
    return HostFile(machine, names, str(path))


def _fabric(fabric: str | os.PathLike[str], wishes: Wishes) -> Machine:
    machine = read_machine(fabric, wishes) if is_path(fabric) else None
    return ports_of(load_topology(fabric)) if machine is None else machine


def _adapters(text: str) -> dict[str, str] | list[str]:
    """From ``HCA-1=mlx5_0,HCA-2=mlx5_1``, or ``mlx5_0,mlx5_1``."""
    parts = [part.strip() for part in text.split(",")]
    if "=" not in text and all(parts) and len(set(parts)) == len(parts):
        return parts
    pairs: dict[str, str] = {}
    for part in parts:
        old, equals, new = (piece.strip() for piece in part.partition("="))
        if not (old and equals and new) or old in pairs:
            raise InputError(
                f"adapters {quoted(text)}: {quoted(part)} does not belong there; say each "
                "one of the fabric once, as in HCA-1=mlx5_0,HCA-2=mlx5_1, or for a fabric without "
                "names each one of a host, as in mlx5_0,mlx5_1"
            )
        pairs[old] = new
    if len(set(pairs.values())) < len(pairs):
        raise InputError(f"adapters {quoted(text)} gives two the same name")
    return pairs
