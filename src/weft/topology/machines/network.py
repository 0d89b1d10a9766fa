"""From what a file says of a machine to the network that Weft plans for.

GPUs become NPUs, all other parts switches that forward. Two things are left out because nothing
can pass there: what leads nowhere (an adapter without a fabric), and what only passes on from one
link to the next, which is one link of the lower rate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from weft.errors import InputError
from weft.quoting import counted
from weft.topology.labels import Labels, Wishes
from weft.topology.machines.machine import ENDPOINTS, Cable, Machine
from weft.topology.model import Topology
from weft.topology.rates import NOMINAL, Rate
from weft.units import MAX_BANDWIDTH, PS_PER_US, format_time

LATENCY = {
    "nvlink": 0.35,
    "xgmi": 0.7,
    "c2c": 0.35,
    "pcie": 0.15,
    "cpu": 0.15,
    "leaf": 1.0,
}
"""α in microseconds where no file says it, as in the presets: a GPU to its NVSwitch, an adapter to
its leaf with what the host does for it."""
BETWEEN_GPUS = 0.7
MAIN = ("nvlink", "nvswitch", "xgmi")
"""Kinds whose rate is asked for even where GPUs could do without: it is what they are built for."""
OTHER = 0.5


@dataclass(frozen=True)
class _Link:
    rate: int
    latency: int


def network_of(machine: Machine, wishes: Wishes | None = None) -> Topology:
    """The network of a machine, with what a user says that the file does not.

    Raises
    ------
    InputError
        Something that is needed is not known: the message names the option that says it.
    """
    wishes = wishes or Wishes()
    npus = [*machine.of_kind(ENDPOINTS[0])] or machine.of_kind(ENDPOINTS[1])
    if not npus:
        raise InputError(f"{machine.name}: {machine.source} has no GPU and no host in it")
    notes = [*machine.doubts, *machine.notes]
    links = _links(machine, npus, wishes, notes)
    _prune(links, set(npus))
    order = npus + sorted({part for link in links for part in link} - set(npus))
    number = {part: i for i, part in enumerate(order)}
    rows = sorted((number[a], number[b], link) for (a, b), link in links.items())
    src, dst = [row[0] for row in rows], [row[1] for row in rows]
    network = Topology.from_links(
        machine.name,
        len(npus),
        src,
        dst,
        [row[2].rate for row in rows],
        [row[2].latency for row in rows],
        switches=len(order) - len(npus),
    )
    parts = [machine.parts[part] for part in order]
    able = [i for i, part in enumerate(parts) if part.adds]
    labels = Labels(
        tuple(part.name for part in parts),
        tuple(part.kind for part in parts),
        tuple(part.host for part in parts),
        tuple(notes),
    )
    network = network.with_switches(copying=able, adding=able) if able else network
    return replace(network, labels=labels)


Links = dict[tuple[int, int], _Link]


def _links(machine: Machine, npus: list[int], wishes: Wishes, notes: list[str]) -> Links:
    """One link for all cables from one part to another, with the rates and α that are wished."""
    check_kinds(machine, wishes)
    rates, delays = wishes.bandwidth or {}, wishes.latency or {}
    cables = [
        replace(cable, rate=Rate(rates[cable.kind], rates[cable.kind]))
        if cable.kind in rates
        else cable
        for cable in machine.cables
    ]
    cables = _without_unknown(machine, cables, npus, notes)
    _check_rates(machine, cables, wishes.rates)
    links: Links = {}
    assumed: dict[str, int] = {}
    for cable in cables:
        delay = delays.get(cable.kind, cable.latency)
        if delay is None:
            direct = machine.parts[cable.src].kind == machine.parts[cable.dst].kind == "gpu"
            us = BETWEEN_GPUS if direct else LATENCY.get(cable.kind, OTHER)
            delay = assumed[cable.kind] = round(us * PS_PER_US)
        ends = cable.src, cable.dst
        before = links.get(ends)
        rate = (cable.rate and cable.rate.at(wishes.rates)) or 0
        links[ends] = _Link(
            rate + (before.rate if before else 0), min(delay, before.latency) if before else delay
        )
    most = max((link.rate for link in links.values()), default=0)
    if most > MAX_BANDWIDTH:
        raise InputError(f"{machine.name}: a link has {most} B/s; expected at most {MAX_BANDWIDTH}")
    if assumed:
        words = ", ".join(f"{kind} {format_time(ps)}" for kind, ps in sorted(assumed.items()))
        example = next(iter(sorted(assumed)))
        notes.append(f"α is not in the file; taken: {words}; --latency {example}=1us says another")
    return links


def check_kinds(machine: Machine, wishes: Wishes) -> None:
    """Raise if something is said of a kind of links that there is not."""
    kinds = {cable.kind for cable in machine.cables}
    for what, said in (("bandwidth", wishes.bandwidth), ("latency", wishes.latency)):
        for kind in sorted((said or {}).keys() - kinds):
            there = ", ".join(sorted(kinds)) or "none"
            raise InputError(f"{machine.name} has no {kind} links to give a {what}; it has {there}")


def _without_unknown(
    machine: Machine, cables: list[Cable], npus: list[int], notes: list[str]
) -> list[Cable]:
    """Cables whose rate is known; of the others those are asked for that NPUs need to be joined."""
    unknown = [cable for cable in cables if not cable.rate]
    if not unknown:
        return cables
    known = [cable for cable in cables if cable.rate]
    kinds = {cable.kind for cable in unknown}
    needed = kinds & {*MAIN, *machine.asked}
    for kind in sorted(kinds - needed, key=lambda kind: (kind == "cpu", kind != "pcie", kind)):
        if _joined(npus, [*known, *(cable for cable in unknown if cable.kind in needed)]):
            break
        needed.add(kind)
    asked = [cable for cable in unknown if cable.kind in needed]
    what, where, option = _asking(machine, asked or unknown)
    if asked:
        raise InputError(
            f"{machine.name}: {machine.source} does not say how fast {what} are, such as {where}; "
            f"say it with {option}"
        )
    notes.append(f"left out: {what} of unknown rate, such as {where}; {option} brings them in")
    return known


def _asking(machine: Machine, unknown: list[Cable]) -> tuple[str, str, str]:
    """Which links have no rate, where one of them is, and the option that says it."""
    kinds = Counter(cable.kind for cable in unknown)
    first = unknown[0]
    return (
        counted({f"{kind} link": number for kind, number in sorted(kinds.items())}),
        f"{machine.parts[first.src].described} to {machine.parts[first.dst].described}",
        "--bandwidth " + ",".join(f"{kind}=50GB/s" for kind in sorted(kinds)),
    )


def _check_rates(machine: Machine, cables: Iterable[Cable], rates: str) -> None:
    """Raise if reachable rates are asked for where none was published."""
    for cable in cables if rates != NOMINAL else ():
        if cable.rate is not None and cable.rate.at(rates) is None:
            raise InputError(
                f"{machine.name}: what the {cable.kind} links of "
                f"{machine.parts[cable.src].described} reach is not known; say it with "
                f"--bandwidth {cable.kind}=50GB/s"
            )


def _joined(npus: list[int], cables: Iterable[Cable]) -> bool:
    """Whether cables join all NPUs."""
    near: dict[int, list[int]] = {}
    for cable in cables:
        near.setdefault(cable.src, []).append(cable.dst)
        near.setdefault(cable.dst, []).append(cable.src)
    seen, waiting = {npus[0]}, [npus[0]]
    while waiting:
        for other in near.get(waiting.pop(), ()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen.issuperset(npus)


def _prune(links: Links, npus: set[int]) -> None:
    """Take out switches that lead nowhere, and those with two neighbours that only pass on."""
    out: dict[int, set[int]] = {}
    into: dict[int, set[int]] = {}
    for a, b in links:
        out.setdefault(a, set()).add(b)
        into.setdefault(b, set()).add(a)
    waiting = [part for part in {*out, *into} if part not in npus]
    while waiting:
        part = waiting.pop()
        after, before = out.get(part, set()), into.get(part, set())
        near = after | before
        if part in npus or not near or len(near) > 2:
            continue
        passing: Links = {}
        if len(near) == 2:
            passing = _passing(links, part, near)
            if any(ends in links for ends in passing):
                continue  # beside a link that is there: two ways, which stay two
        for other in near:
            links.pop((part, other), None)
            links.pop((other, part), None)
            out.get(other, set()).discard(part)
            into.get(other, set()).discard(part)
        out.pop(part, None)
        into.pop(part, None)
        for (a, b), link in passing.items():
            links[a, b] = link
            out.setdefault(a, set()).add(b)
            into.setdefault(b, set()).add(a)
        waiting.extend(near)


def _passing(links: Mapping[tuple[int, int], _Link], part: int, near: set[int]) -> Links:
    """The links that stand for a way through a part with two neighbours."""
    a, b = sorted(near)
    made: Links = {}
    for one, other in ((a, b), (b, a)):
        first, second = links.get((one, part)), links.get((part, other))
        if first and second:
            made[one, other] = _Link(min(first.rate, second.rate), first.latency + second.latency)
    return made
