"""Networks by name: ``mesh:8x8``, ``ring:4*fc:8*switch:4``, ``leaf-spine:8x4x2``, ``h100:4``.

A spec is a kind of the table `TOPOLOGIES` with its parameters, or a product of factors joined by
``*``. Each factor is a kind and its sizes; the first dimension varies fastest. After commas follow
options of the kind, ``clos:8x4x4,up=4x2``, and what its switches can do:
``dgx2:2,multicast,buffer=1MiB``; ``plain`` takes away what they could.

To add a kind that is a product of wirings, add a row to `FACTORS`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from weft.errors import InputError
from weft.quoting import quoted
from weft.topology.dimensions import MAX_NPUS, Dimension, product
from weft.topology.fabrics import FABRICS
from weft.topology.kinds import TOPOLOGIES, Kind, Speeds, sizes_of, speeds_of
from weft.topology.model import Topology
from weft.topology.presets import MACHINES
from weft.topology.rates import NOMINAL, check_rates
from weft.units import MAX_BANDWIDTH, MAX_LATENCY_PS, parse_buffer

SUFFIXES = (".yaml", ".yml", ".json")
"""Endings that make a name a file's, not a spec."""


@dataclass(frozen=True, kw_only=True)
class Factor(Kind):
    """A kind that can be multiplied: its wiring, and whether it takes several sizes."""

    wiring: str
    many: bool = False
    rank: int = 10

    def network(
        self, spec: str, parameters: str | None, bandwidth: Speeds, latency: Speeds
    ) -> Topology:
        return multiplied(spec, [(self, parameters)], bandwidth, latency)

    def dimensions(self, spec: str, parameters: str | None, speed: int) -> list[Dimension]:
        """Its dimensions, whose speeds are numbered from `speed`."""
        sizes = sizes_of(spec, parameters, self.example, () if self.many else (1,))
        if self.name == "hypercube":
            # Past this many dimensions the network is refused anyway: do not list them all.
            cubes = min(sizes[0], MAX_NPUS.bit_length() + 1)
            return [Dimension(self.wiring, 2, speed)] * cubes
        return [Dimension(self.wiring, size, speed + i) for i, size in enumerate(sizes)]


def multiplied(
    spec: str, factors: Sequence[tuple[Factor, str | None]], bandwidth: Speeds, latency: Speeds
) -> Topology:
    """The product of factors with their sizes."""
    dimensions: list[Dimension] = []
    for factor, sizes in factors:
        speed = dimensions[-1].speed + 1 if dimensions else 0
        dimensions += factor.dimensions(spec, sizes, speed)
    speeds = speeds_of(spec, dimensions[-1].speed + 1, bandwidth, latency)
    return product(spec, dimensions, *speeds)


FACTORS = (
    Factor(name="ring", wiring="ring", example="ring:8", summary="each with the next, and back"),
    Factor(name="line", wiring="line", example="line:8", summary="a ring that is not closed"),
    Factor(name="fc", wiring="fc", example="fc:8", summary="each with each"),
    Factor(name="switch", wiring="switch", example="switch:16", summary="all on one switch"),
    Factor(name="mesh", wiring="line", many=True, example="mesh:8x8", summary="lines on a grid"),
    Factor(
        name="torus", wiring="ring", many=True, example="torus:4x4x8", summary="rings on a grid"
    ),
    Factor(name="hypercube", wiring="ring", example="hypercube:7", summary="2 in each dimension"),
)
for _kind in (*FACTORS, *FABRICS, *MACHINES):
    TOPOLOGIES.add(_kind.name, _kind, rank=_kind.rank)


# What others call them, and what to write instead.
ALSO_CALLED = {
    "fattree": "fat-tree:8, leaf-spine:8x4x2 for two tiers, clos:8x4x4 for three of any size",
    "spine-leaf": "leaf-spine:8x4x2",
    "flattened-butterfly": "hyperx:4x4,p=4",
    "nvl": "nvl72:2, gb300:2, vr200:2",
    "rail": "rails:8x4 for boxes with a leaf a rail, rails:8x4x2 with spines above",
    "clique": "fc:8",
    "star": "switch:16",
    "grid": "mesh:8x8",
    "chain": "line:8",
    "cube": "hypercube:7, or torus:4x4x8",
    "tpu": "tpuv4:4x4x4, tpuv5p:4x4x8, tpuv5e:8x16, tpuv6e:16x16, tpu7x:4x4x8",
    "trainium": "trn2:2, trn2-ultra:2",
    "rubin": "vr200:2",
    "cloudmatrix": "cloudmatrix384:6",
    "nvswitch": "switch:16, or a machine: dgx2, a100:2, h100:2",
}
for _same, _as in (
    ("folded-clos", "fattree"),
    ("nvl144", "rubin"),
    ("trn", "trainium"),
    ("ascend", "cloudmatrix"),
    ("rail-optimized", "rail"),
    ("full-mesh", "clique"),
    ("fully-connected", "clique"),
    ("crossbar", "star"),
    ("path", "chain"),
):
    ALSO_CALLED[_same] = ALSO_CALLED[_as]


def is_known(spec: str) -> bool:
    """Whether a spec begins with a kind or a machine that Weft knows."""
    kind = re.split(r"[:*,]", spec, maxsplit=1)[0].strip().lower()
    return kind in TOPOLOGIES


def parse_topology(
    spec: str,
    *,
    bandwidth: Sequence[int] | None = None,
    latency: Sequence[int] | None = None,
    rates: str = NOMINAL,
) -> Topology:
    """Build the network that `spec` names.

    Parameters
    ----------
    spec
        Such as ``mesh:8x8``, ``ring:4*switch:2`` or ``switch:8,multicast``; it becomes the
        network's name.
    bandwidth
        B/s of the links: one value for all, or one per dimension. A hypercube is one
        dimension; a fabric has one for each level: local and global links of a dragonfly, NPUs
        to leaves before leaves to spines before spines to cores, boxes before rails before
        spines, NPUs to routers before links between routers. 50 GB/s if not given.
    latency
        ps of the links, likewise; 0.5 us if not given. A preset takes one value at most, which
        then holds for all its links.
    rates
        ``nominal``, or ``reachable`` for the rates that were measured on a machine.
    """
    name = spec.strip()
    if not name:
        raise InputError("the topology is empty; write it like mesh:8x8")
    check_speeds(bandwidth, latency)
    check_rates(rates)
    wires, *more = name.split(",")
    known = _kind_of(name, wires.partition(":")[0].strip().lower()).options if more else ()
    options = [text for text in more if _is_option(text, known)]
    abilities = [text for text in more if text not in options]
    topology = _wired(name, wires, options, bandwidth, latency, rates)
    return _with_abilities(topology, abilities, known) if abilities else topology


def _is_option(text: str, known: Sequence[str]) -> bool:
    word, equals, _ = text.partition("=")
    return bool(equals) and word.strip().lower() in known


def _wired(
    name: str,
    wires: str,
    options: Sequence[str],
    bandwidth: Speeds,
    latency: Speeds,
    rates: str,
) -> Topology:
    """Nodes and links; `wires` is the spec without what follows after commas."""
    parts = []
    for text in wires.split("*"):
        word, colon, parameters = text.partition(":")
        kind = _at(name, _kind_of(name, word.strip().lower()), rates)
        parts.append((kind, parameters if colon else None))
    if len(parts) == 1:
        only, sizes = parts[0]
        given = ",".join([sizes or "", *options]) if options else sizes
        return only.network(name, given, bandwidth, latency)
    factors = [(kind, given) for kind, given in parts if isinstance(kind, Factor)]
    for kind, _ in parts:
        if not isinstance(kind, Factor):
            names = ", ".join(k for k, entry in TOPOLOGIES.items() if isinstance(entry, Factor))
            raise InputError(
                f"topology {quoted(name)}: {kind.name} cannot be multiplied; only {names} can"
            )
    return multiplied(name, factors, bandwidth, latency)


def _at(name: str, kind: Kind, rates: str) -> Kind:
    found = kind.at(rates)
    if found is None:
        raise InputError(
            f"topology {quoted(name)}: {kind.name} is no machine of which it was published what "
            f"its links reach; leave out --rates {rates} and give --bandwidth instead"
        )
    return found


def _kind_of(name: str, kind: str) -> Kind:
    if not kind:
        raise InputError(
            f"topology {quoted(name)} has a part without a kind; write it like mesh:8x8"
        )
    if kind in ALSO_CALLED and kind not in TOPOLOGIES:
        instead = f"write {ALSO_CALLED[kind]} (known: {', '.join(sorted(TOPOLOGIES))})"
        raise InputError(f"unknown topology '{kind}'; {instead}")
    return TOPOLOGIES.find(kind)


def _with_abilities(
    topology: Topology, abilities: Sequence[str], options: Sequence[str]
) -> Topology:
    """The network with what all its switches can do: ``multicast``, ``buffer=64KiB``."""
    name = topology.name
    switches = range(topology.npus, topology.nodes)
    if not switches:
        raise InputError(
            f"topology {quoted(name)} has no switches for {quoted(abilities[0].strip())}"
        )
    for text in abilities:
        key, equals, value = (part.strip() for part in text.partition("="))
        if key.lower() == "multicast" and not equals:
            topology = topology.with_switches(copying=switches)
        elif key.lower() == "adding" and not equals:
            topology = topology.with_switches(adding=switches)
        elif key.lower() == "plain" and not equals:
            topology = topology.plain
        elif key.lower() == "buffer" and value:
            limits = dict.fromkeys(switches, parse_buffer(value))
            topology = topology.with_switches(buffers=limits)
        else:
            raise InputError(
                f"topology {quoted(name)}: {quoted(text.strip())} is nothing a switch can do; "
                f"write multicast, adding, plain or buffer=64KiB{_or_options(options)}"
            )
    return topology


def _or_options(options: Sequence[str]) -> str:
    return f", or what the network takes: {', '.join(f'{name}=' for name in options)}" * bool(
        options
    )


def check_speeds(bandwidth: Sequence[int] | None, latency: Sequence[int] | None) -> None:
    """Refuse bandwidths (B/s) and latencies (ps) that no link can have."""
    _check_range("bandwidth", bandwidth, 1, MAX_BANDWIDTH, "B/s")
    _check_range("latency", latency, 0, MAX_LATENCY_PS, "ps")


def _check_range(what: str, values: Sequence[int] | None, least: int, most: int, unit: str) -> None:
    for value in values or ():
        if not least <= value <= most:
            raise InputError(f"{what} {value} {unit} is out of range: {least} to {most} {unit}")
