"""Networks by name: ``mesh:8x8``, ``ring:4*fc:8*switch:4``, ``leaf-spine:8x4x2``, ``h100:4``.

A spec is a preset (see `weft.topology.presets`), a fabric (see `weft.topology.fabrics`), or a
product of factors joined by ``*``. Each factor is a kind and its sizes; the first dimension
varies fastest. What its switches can do follows after commas: ``dgx2:2,multicast,buffer=1MiB``.

To add a kind that is a product of wirings, add a row to `FACTORS`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from weft.errors import InputError, unknown_name
from weft.quoting import quoted
from weft.topology.dimensions import MAX_NPUS, Dimension, product
from weft.topology.fabrics import FABRICS
from weft.topology.model import Topology
from weft.topology.presets import PRESETS
from weft.units import MAX_BANDWIDTH, MAX_LATENCY_PS, parse_buffer

SUFFIXES = (".yaml", ".yml", ".json")
"""Endings that make a name a file's, not a spec."""
DEFAULT_BANDWIDTH = 50 * 10**9
"""B/s of every link when none is given: one 400 Gbit/s port."""
DEFAULT_LATENCY = 500_000
"""ps of every link when none is given: 0.5 us."""


@dataclass(frozen=True)
class Factor:
    """A kind that can be multiplied: its wiring, and whether it takes several sizes."""

    wiring: str
    many: bool
    example: str


FACTORS = {
    "ring": Factor("ring", many=False, example="ring:8"),
    "line": Factor("line", many=False, example="line:8"),
    "fc": Factor("fc", many=False, example="fc:8"),
    "switch": Factor("switch", many=False, example="switch:16"),
    "mesh": Factor("line", many=True, example="mesh:8x8"),
    "torus": Factor("ring", many=True, example="torus:4x4x8"),
    "hypercube": Factor("ring", many=False, example="hypercube:7"),
}


# What others call them, and what to write instead.
ALSO_CALLED = {
    "fat-tree": "leaf-spine:8x4x2 for leaves and spines, rails:8x4x2 for boxes with a leaf a rail",
    "rail": "rails:8x4 for boxes with a leaf a rail, rails:8x4x2 with spines above",
    "clique": "fc:8",
    "star": "switch:16",
    "grid": "mesh:8x8",
    "chain": "line:8",
    "cube": "hypercube:7, or torus:4x4x8",
    "tpu": "tpuv4:4x4x4",
    "nvswitch": "switch:16, or a machine: dgx2, a100:2, h100:2",
}
for _same, _as in (
    ("fattree", "fat-tree"),
    ("clos", "fat-tree"),
    ("spine-leaf", "fat-tree"),
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
    return kind in FACTORS or kind in PRESETS or kind in FABRICS


def parse_topology(
    spec: str,
    *,
    bandwidth: Sequence[int] | None = None,
    latency: Sequence[int] | None = None,
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
        to leaves and leaves to spines, boxes before rails before spines. 50 GB/s if not given.
    latency
        ps of the links, likewise; 0.5 us if not given. A preset takes one value at most, which
        then holds for all its links.
    """
    name = spec.strip()
    if not name:
        raise InputError("the topology is empty; write it like mesh:8x8")
    check_speeds(bandwidth, latency)
    wires, *abilities = name.split(",")
    topology = _wired(name, wires.lower(), bandwidth, latency)
    return _with_abilities(topology, abilities) if abilities else topology


def _wired(
    name: str, wires: str, bandwidth: Sequence[int] | None, latency: Sequence[int] | None
) -> Topology:
    """Nodes and links; `wires` is the spec without what switches can do."""
    kind, colon, numbers = wires.partition(":")
    kind = kind.strip()
    if "*" not in wires and kind in PRESETS:
        topology = PRESETS[kind](name, numbers if colon else None)
        return override_links(topology, bandwidth, latency)
    if "*" not in wires and kind in FABRICS:
        fabric = FABRICS[kind]
        sizes = _sizes(name, numbers, fabric.example, fabric.sizes)
        speeds = fabric.levels_for(sizes)
        rates = _per_dimension(name, "bandwidth", bandwidth, speeds, DEFAULT_BANDWIDTH)
        delays = _per_dimension(name, "latency", latency, speeds, DEFAULT_LATENCY)
        return fabric.build(name, sizes, rates, delays)
    dimensions = _dimensions(name, wires)
    speeds = dimensions[-1].speed + 1
    return product(
        name,
        dimensions,
        _per_dimension(name, "bandwidth", bandwidth, speeds, DEFAULT_BANDWIDTH),
        _per_dimension(name, "latency", latency, speeds, DEFAULT_LATENCY),
    )


def _with_abilities(topology: Topology, abilities: Sequence[str]) -> Topology:
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
        elif key.lower() == "buffer" and value:
            limits = dict.fromkeys(switches, parse_buffer(value))
            topology = topology.with_switches(buffers=limits)
        else:
            raise InputError(
                f"topology {quoted(name)}: {quoted(text.strip())} is nothing a switch can do; "
                "write multicast or buffer=64KiB"
            )
    return topology


def _dimensions(name: str, wires: str) -> list[Dimension]:
    """The dimensions of a product of factors, numbered for their speeds."""
    dimensions: list[Dimension] = []
    for text in wires.split("*"):
        kind, _, numbers = (part.strip() for part in text.partition(":"))
        factor = _factor(name, kind)
        sizes = _sizes(name, numbers, factor.example, () if factor.many else (1,))
        speed = dimensions[-1].speed + 1 if dimensions else 0
        if kind == "hypercube":
            # Past this many dimensions the network is refused anyway: do not list them all.
            cubes = min(sizes[0], MAX_NPUS.bit_length() + 1)
            dimensions += [Dimension(factor.wiring, 2, speed)] * cubes
        else:
            dimensions += [Dimension(factor.wiring, s, speed + i) for i, s in enumerate(sizes)]
    return dimensions


def _factor(name: str, kind: str) -> Factor:
    if kind in FACTORS:
        return FACTORS[kind]
    if not kind:
        raise InputError(
            f"topology {quoted(name)} has a part without a kind; write it like mesh:8x8"
        )
    if kind in PRESETS or kind in FABRICS:
        raise InputError(
            f"topology {quoted(name)}: {kind} cannot be multiplied; only {', '.join(FACTORS)} can"
        )
    known = sorted([*FACTORS, *PRESETS, *FABRICS])
    if kind in ALSO_CALLED:
        instead = f"write {ALSO_CALLED[kind]} (known: {', '.join(known)})"
        raise InputError(f"unknown topology '{kind}'; {instead}")
    raise unknown_name("topology", kind, known)


def _sizes(name: str, text: str, example: str, counts: Sequence[int]) -> list[int]:
    """Numbers from 1 joined by ``x``; as many as one of `counts`, or any number without them."""
    parts = [part.strip() for part in text.split("x")]
    if not all(re.fullmatch(r"[0-9]+", part) and part.strip("0") for part in parts):
        raise InputError(
            f"topology {quoted(name)}: size {quoted(text.strip())} is not a whole number from 1; "
            f"write it like {example}"
        )
    if counts and len(parts) not in counts:
        raise InputError(
            f"topology {quoted(name)} has {_count(len(parts), 'size')}, not "
            f"{' or '.join(map(str, counts))}; "
            f"write it like {example}"
        )
    # A number this long is refused by its size; Python would refuse it with a traceback.
    return [int(part) if len(part.lstrip("0")) < 12 else 10**12 for part in parts]


def check_speeds(bandwidth: Sequence[int] | None, latency: Sequence[int] | None) -> None:
    """Refuse bandwidths (B/s) and latencies (ps) that no link can have."""
    _check_range("bandwidth", bandwidth, 1, MAX_BANDWIDTH, "B/s")
    _check_range("latency", latency, 0, MAX_LATENCY_PS, "ps")


def _check_range(what: str, values: Sequence[int] | None, least: int, most: int, unit: str) -> None:
    for value in values or ():
        if not least <= value <= most:
            raise InputError(f"{what} {value} {unit} is out of range: {least} to {most} {unit}")


def _per_dimension(
    name: str, what: str, values: Sequence[int] | None, dimensions: int, default: int
) -> list[int]:
    """One value per dimension, from one for all, one for each, or none."""
    if values is None:
        return [default] * dimensions
    if len(values) == 1:
        return list(values) * dimensions
    if len(values) != dimensions:
        raise InputError(
            f"topology {quoted(name)} has {_count(dimensions, 'dimension')} but "
            f"{_count(len(values), what + ' value')}; give one, or one per dimension"
        )
    return list(values)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def override_links(
    topology: Topology, bandwidth: Sequence[int] | None, latency: Sequence[int] | None
) -> Topology:
    """A preset or a file with one bandwidth or latency on all links, where given."""
    for what, values in (("bandwidth", bandwidth), ("latency", latency)):
        if values is not None and len(values) != 1:
            raise InputError(
                f"topology {quoted(topology.name)} has its own links: give one {what} for all of "
                f"them or none, not {len(values)}"
            )
    return topology.with_links(
        bandwidth=bandwidth[0] if bandwidth else None, latency=latency[0] if latency else None
    )
