"""What joins ranks, as far as measurements tell: links of their own, ports, boxes behind NICs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.runtime.crossings import Ways, apart
from weft.runtime.flows import Floats, Meter
from weft.topology import Topology, parse_topology

_ALIKE = 0.75  # of the sum of rates: less, and something is shared
_GAP = 1.5  # between the rates in a box and those to others
_PORT = 0.25  # how far a rate may be from what two ports let through
_NOISY = 0.1
_LATER = 3  # measurements for each rank that follow

Links = list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Structure:
    """Nodes and links; rates and α mean nothing yet.

    Attributes
    ----------
    words
        What it is.
    doubts
        What could not be told: sentences.
    shared
        What it is instead if links together carry less than each alone.
    """

    topology: Topology
    words: str
    doubts: Sequence[str] = ()
    shared: Structure | None = None


def structure_of(meter: Meter, ways: Ways) -> Structure:
    """Find it: told by ways of one link, or from rates."""
    ranks = meter.ranks
    direct = _direct(ranks, ways)
    if direct is not None:
        return Structure(direct, "links between neighbours, told by their addresses")
    if ranks == 2:
        doubt = "two ranks do not tell whether they have a link or ports of a switch"
        return Structure(_built(2, [(0, 1), (1, 0)]), "one link each way", [doubt])
    doubts = []
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    if meter.expect(len(pairs) + _LATER * ranks):
        rounds = [[at] for at in range(len(pairs))]
    else:
        halves = [[at for at, (a, b) in enumerate(pairs) if (a < b) == up] for up in (True, False)]
        rounds = [
            [half[at] for at in r] for half in halves for r in apart([pairs[i] for i in half])
        ]
        doubts.append(
            f"pairs were not measured one by one, but {ranks // 2} at once: where these share "
            "links, rates are too low; --time says how long it may take"
        )
    meter.expect(len(rounds) + _LATER * ranks)
    rate, noise = np.zeros((ranks, ranks)), []
    for chosen in rounds:
        samples = meter.rates(tuple(pairs[at] for at in chosen))
        for at, own in zip(chosen, samples.T, strict=True):
            rate[pairs[at]] = np.median(own)
            noise.append(float(np.std(own) / np.median(own)))
    unsure = float(np.median(noise))
    if unsure > _NOISY:
        doubts.append(
            f"rates of the same pair differ by {unsure:.0%}: others use these machines, or there "
            "are more ranks than cores"
        )
    boxes = _boxes(rate, _GAP * (1 + 2 * unsure))
    if boxes:
        return _behind_nics(meter, rate, boxes, doubts)
    if not _fits_ports(rate, max(_PORT, 2 * unsure)):
        doubts.append(
            "rates of pairs are not those of ports, nor of boxes; each pair is written as a link "
            "of its own: give --topology if you know better"
        )
        return Structure(_built(ranks, pairs), "a link for each pair", doubts)
    if _own_links(meter, rate, range(ranks)):
        return Structure(_built(ranks, pairs), "a link for each pair", doubts)
    shared = _built(ranks, _through_two(ranks), 2)
    words = "ports of a switch"
    return Structure(
        parse_topology(f"switch:{ranks}"),
        words,
        doubts,
        Structure(shared, f"{words} that carries less than its ports together", doubts),
    )


def _direct(ranks: int, ways: Ways) -> Topology | None:
    """Links between neighbours, with their numbers, if these join all ranks."""
    told = {steps[0]: pair for pair, some in ways.items() for steps in some if len(steps) == 1}
    near: dict[int, set[int]] = {}
    for a, b in told.values():
        near.setdefault(a, set()).add(b)
    reached = {0}
    for _ in range(ranks):
        reached |= {b for a in reached for b in near.get(a, ())}
    if len(reached) < ranks:
        return None
    return _built(ranks, [told[number] for number in sorted(told)])


def _built(ranks: int, links: Links, switches: int = 0) -> Topology:
    src, dst = zip(*links, strict=True)
    return Topology.from_links(
        f"network of {ranks}", ranks, src, dst, "1GB/s", "0us", switches=switches
    )


def _through_two(ranks: int) -> Links:
    """Ports whose bytes all cross one link in the middle."""
    up = [(rank, ranks) for rank in range(ranks)]
    return [*up, (ranks, ranks + 1), *((ranks + 1, rank) for rank in range(ranks))]


def _fits_ports(rate: Floats, tolerance: float) -> bool:
    """Whether each rate is that of the slower of two ports, but for one in twenty."""
    ports = np.minimum.outer(rate.max(axis=1), rate.max(axis=0))
    off = np.abs(rate / ports - 1)[~np.eye(len(rate), dtype=bool)]
    return bool((off > tolerance).mean() <= 0.05)


def _boxes(rate: Floats, gap: float) -> list[list[int]]:
    """Ranks that reach each other faster than all others; none if there are no such."""
    ranks = len(rate)
    slower = np.minimum(rate, rate.T)
    rates = np.sort(slower[np.triu_indices(ranks, 1)])
    at = int(np.argmax(rates[1:] / rates[:-1]))
    if rates[at + 1] < gap * rates[at]:
        return []
    fast = (slower >= rates[at + 1]) | np.eye(ranks, dtype=bool)
    boxes = sorted({tuple(np.flatnonzero(row).tolist()) for row in fast})
    whole = sorted(rank for box in boxes for rank in box) == [*range(ranks)]
    if not whole or len(boxes) < 2 or min(map(len, boxes)) < 2:
        return []
    return [[*box] for box in boxes]


def _own_links(meter: Meter, rate: Floats, among: Sequence[int]) -> bool:
    """Whether ranks send to several others as fast as to one after the other."""
    if len(among) < 3:
        return True
    shares = []
    for rank in among:
        flows = tuple((rank, other) for other in among if other != rank)
        together = float(np.median(meter.rates(flows, np.ones((1, len(flows))))))
        shares.append(together / sum(rate[pair] for pair in flows))
    return bool(np.median(shares) >= _ALIKE)


def _behind_nics(
    meter: Meter, rate: Floats, boxes: list[list[int]], doubts: list[str]
) -> Structure:
    """Boxes inside which ranks have links or ports, and NICs of boxes or of ranks."""
    ranks = len(rate)
    own_links = all(_own_links(meter, rate, box) for box in boxes)
    own_nics = _own_nics(meter, rate, boxes)
    links: Links = []
    spine, node = ranks, ranks + 1
    for box in boxes:
        inner = [node + k for k in range(not own_links)]
        node += len(inner)
        if own_links:
            links += [(a, b) for a in box for b in box if a != b]
        else:
            links += [pair for rank in box for pair in ((rank, inner[0]), (inner[0], rank))]
        if own_nics:
            # A switch of its own is what keeps the ways inside a box shorter.
            nics = {rank: node + k for k, rank in enumerate(box)}
            node += len(box)
        else:
            nics = dict.fromkeys(box, inner[0] if inner else node)
            node += not inner
        if own_nics or own_links:
            links += [pair for rank in box for pair in ((rank, nics[rank]), (nics[rank], rank))]
        links += [pair for nic in sorted({*nics.values()}) for pair in ((nic, spine), (spine, nic))]
    inside = "a link for each pair" if own_links else "ports of a switch"
    outside = "a NIC for each rank" if own_nics else "a NIC for each"
    sizes = ", ".join(map(str, dict.fromkeys(map(len, boxes))))
    words = f"{len(boxes)} boxes of {sizes}: {inside} inside, {outside} outside"
    return Structure(_built(ranks, links, node - ranks), words, doubts)


def _own_nics(meter: Meter, rate: Floats, boxes: list[list[int]]) -> bool:
    """Whether the ranks of a box send to other boxes together as fast as each alone."""
    shares = []
    for box in boxes:
        others = [rank for rank in range(len(rate)) if rank not in box]
        flows = tuple((rank, others[k % len(others)]) for k, rank in enumerate(box))
        together = float(np.median(meter.rates(flows, np.ones((1, len(flows))))))
        shares.append(together / sum(rate[pair] for pair in flows))
    return bool(np.median(shares) >= _ALIKE)
