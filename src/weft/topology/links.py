"""Links as people name them: ``3-4`` both ways, ``3>4`` one way, ``0-s1`` to a switch."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft.errors import InputError, TopologyError
from weft.quoting import quoted
from weft.units import (
    parse_bandwidth,
    parse_latency,
)

if TYPE_CHECKING:
    from weft.topology.model import Topology

Pair = tuple[int, int]
Links = str | Iterable[str | Pair]
"""Links of a network: texts such as ``3-4``, ``3>4`` or ``0-s1``, or pairs (from, to) of nodes."""
Quantity = str | int | float

_NODE = re.compile(r"\s*(s?)([0-9]{1,9})\s*")
LOST = "without "
_MOST_NAMED = 6  # in a title


def node_name(node: int, npus: int) -> str:
    """What people call a node: an NPU's number, or ``s0`` for the first switch after the NPUs."""
    return str(node) if node < npus else f"s{node - npus}"


def node_number(topology: Topology, node: int | str, where: str) -> int:
    """The node that is called so; raises TopologyError, which says `where` it is named."""
    match = _NODE.fullmatch(str(node))
    number = -1 if match is None else int(match[2]) + topology.npus * bool(match[1])
    if 0 <= number < topology.nodes:
        return number
    switches = f", switches s0 to s{topology.switches - 1}" if topology.switches else ""
    raise TopologyError(
        f"{where} names {str(node).strip()}, which {topology.name} does not have; "
        f"NPUs are 0 to {topology.npus - 1}{switches}"
    )


def switch_number(topology: Topology, switch: int | str) -> int:
    """The node of a switch that is called so: ``s3``, or its number among switches."""
    match = _NODE.fullmatch(str(switch))
    if match is not None and int(match[2]) < topology.switches:
        return topology.npus + int(match[2])
    there = f"switches are s0 to s{topology.switches - 1}" if topology.switches else "it has none"
    raise TopologyError(f"{topology.name} has no switch {quoted(switch)} to remove; {there}")


def find_links(
    topology: Topology, links: Links, purpose: str
) -> tuple[list[Pair], NDArray[np.bool_]]:
    """The pairs (from, to) that `links` name, ascending, and which links lie between them.

    ``3-4`` means every link between the two, in whichever directions there are; ``3>4`` and pairs
    mean those from one to the other. Parallel links go together.
    """
    nodes = topology.nodes
    named: list[str | Pair] = [links] if isinstance(links, str) else list(links)
    options = [[a * nodes + b for a, b in _pairs(topology, link)] for link in named]
    keys = topology.src.astype(np.int64) * nodes + topology.dst
    hit = np.isin(keys, np.array([key for some in options for key in some], dtype=np.int64))
    there = set(np.unique(keys[hit]).tolist())
    for link, some in zip(named, options, strict=True):
        if there.isdisjoint(some):
            text = link.strip() if isinstance(link, str) else "{}>{}".format(*link)
            raise TopologyError(f"{topology.name} has no link {text} to {purpose}")
    return [divmod(key, nodes) for key in sorted(there)], hit


def _pairs(topology: Topology, link: str | Pair) -> list[Pair]:
    if not isinstance(link, str):
        a, b = int(link[0]), int(link[1])
        return [(a, b)] if 0 <= a < topology.nodes and 0 <= b < topology.nodes else []
    ends = re.split("([->])", link)
    if len(ends) != 3 or not _NODE.fullmatch(ends[0]) or not _NODE.fullmatch(ends[2]):
        raise TopologyError(f"link {quoted(link)} is not one; write it like 3-4, 3>4 or 0-s1")
    a, b = (node_number(topology, end, f"link {quoted(link)}") for end in ends[::2])
    return [(a, b), (b, a)] if ends[1] == "-" else [(a, b)]


def links_between(topology: Topology, src: NDArray[Any], dst: NDArray[Any]) -> NDArray[np.int64]:
    """The link from each of `src` to each of `dst`; -1 where there is none."""
    return LinkIndex(topology).between(src, dst)


class LinkIndex:
    """Finds the links of a network by their ends."""

    def __init__(self, topology: Topology) -> None:
        self._nodes = topology.nodes
        keys = topology.src.astype(np.int64) * topology.nodes + topology.dst
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def between(self, src: NDArray[Any], dst: NDArray[Any]) -> NDArray[np.int64]:
        """The link from each of `src` to each of `dst`; -1 where there is none."""
        wanted = src.astype(np.int64) * self._nodes + dst
        place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[place] == wanted, self._order[place], -1)


def reverse_links(topology: Topology) -> NDArray[np.int32] | None:
    """For each link one that runs the other way at the same speed; None if some have none."""
    columns = (topology.latency, topology.bandwidth)
    there = np.lexsort((*columns, topology.dst, topology.src))
    back = np.lexsort((*columns, topology.src, topology.dst))
    ends = ((topology.src, topology.dst), (topology.dst, topology.src))
    pairs: list[tuple[NDArray[Any], NDArray[Any]]] = [*ends, *((one, one) for one in columns)]
    if not all(np.array_equal(one[there], other[back]) for one, other in pairs):
        return None
    reverse = np.empty(topology.links, dtype=np.int32)
    reverse[there] = back
    return reverse


def connection_names(pairs: Collection[Pair], npus: int) -> Iterator[str]:
    """What people call the links between these pairs; both directions of a connection are one."""
    for src, dst in pairs:
        ends = node_name(src, npus), node_name(dst, npus)
        if (dst, src) not in pairs:
            yield ">".join(ends)
        elif src < dst:
            yield "-".join(ends)


def titled(name: str, changes: Sequence[str]) -> str:
    """A network's name and what was changed in it; of many changes only some."""
    lost = [change.removeprefix(LOST) for change in changes if change.startswith(LOST)]
    other = [change for change in changes if not change.startswith(LOST)]
    words = [LOST + _some(lost)] * bool(lost) + [_some(other)] * bool(other)
    return " ".join([name, ", ".join(words)]).rstrip()


def _some(words: Sequence[str]) -> str:
    """All of a few; of many the first, and how many more there are."""
    if len(words) <= _MOST_NAMED:
        return ", ".join(words)
    shown = words[: _MOST_NAMED - 1]
    return f"{', '.join(shown)} and {len(words) - len(shown)} more"


_UNITS: dict[str, tuple[Callable[[str], int], str, str]] = {
    "bandwidth": (parse_bandwidth, "bytes per second, or '50GB/s'", "bandwidths"),
    "latency": (parse_latency, "picoseconds, or '0.5us'", "latencies"),
}


def quantities(
    name: str, what: str, values: ArrayLike, links: int | None = None
) -> NDArray[np.int64]:
    """The bandwidth or latency of each of `links` links, or of one, in Weft's own units.

    Given as whole numbers or as texts with a unit.
    """
    parse, unit, several = _UNITS[what]
    given = np.asarray(values)

    def place(link: int) -> str:
        return f"{name}: link {link}" if given.ndim else name

    if given.dtype.kind not in "iuf":  # texts, or some of them
        given = np.asarray(values, dtype=object)
        parsed = []
        for link, one in enumerate(given.flat):
            try:
                parsed.append(parse(one) if isinstance(one, str) else one)
            except InputError as error:
                raise TopologyError(f"{place(link)}: {error}") from None
        given = np.asarray(parsed).reshape(given.shape)
    if given.dtype.kind not in "iuf":
        raise TopologyError(f"{name}: a {what} is no number; expected {unit}")
    if given.dtype.kind == "f":
        wrong = ~((given == np.floor(given)) & (np.abs(given) < 2.0**63))
        for link in np.flatnonzero(wrong)[:1].tolist():
            value = float(given.flat[link])
            raise TopologyError(f"{place(link)}: {what} {value!r} is not a whole number of {unit}")
    numbers = given.astype(np.int64)
    if links is None or numbers.shape == (links,):
        return numbers
    if numbers.size != 1:
        raise TopologyError(
            f"{name}: {numbers.size} {several} for {links} links; give one, or as many"
        )
    return np.full(links, numbers.item(), dtype=np.int64)
