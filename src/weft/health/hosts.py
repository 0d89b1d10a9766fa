"""What looks wrong inside hosts: GPUs, their links, and the PCIe tree they hang in."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from weft.health.finding import (
    WORDS,
    Body,
    Ends,
    Finding,
    Speed,
    counted_links,
    meant_so,
    the_others,
    usual,
)
from weft.topology.rates import gigatransfers_of
from weft.units import format_bandwidth

BETWEEN = ("nvlink", "xgmi", "c2c")
"""Kinds of cables that GPUs have beside PCIe: what a GPU has of them, its siblings have too."""
_NEARLY = 0.75  # of all pairs: what has so many is a full mesh with gaps


def one_sided(body: Body) -> Iterator[Finding]:
    """Links that are not the same both ways."""
    for ends, speed in body.links.items():
        back = body.links.get(ends.back)
        if back is None:
            yield Finding(
                "one-sided",
                f"{body.name(ends.src)} has {speed.words(ends.kind)} of "
                f"{WORDS.get(ends.kind, ends.kind)} to {body.name(ends.dst)}, which has none back",
                {ends.back: speed},
            )
        elif back < speed:
            yield Finding(
                "one-sided",
                f"{body.name(ends.dst)} has {back.words(ends.kind)} of "
                f"{WORDS.get(ends.kind, ends.kind)} to {body.name(ends.src)}, which has "
                f"{speed.words(ends.kind)} back",
                {ends.back: speed},
            )


def fewer_links(body: Body) -> Iterator[Finding]:
    """GPUs with fewer or slower NVLinks and the like than the others of their host."""
    for _, gpus in _domains(body):
        for kind in BETWEEN:
            totals = {gpu: _total(body, gpu, kind) for gpu in gpus}
            most = usual(totals.values())
            if most is None or not most.count:
                continue
            for gpu, total in totals.items():
                if total >= most:
                    continue
                others = the_others(sum(t == most for t in totals.values()), "GPU")
                rate = format_bandwidth(most.rate) if most.rate else ""
                if total.count == most.count:  # how many there are may not be known
                    has = f"{format_bandwidth(total.rate)} of {WORDS[kind]}"
                    like = rate
                else:
                    has = counted_links(total.count, kind)
                    like = counted_links(most.count, kind) + (rate and f", {rate}")
                yield Finding(
                    "fewer-links",
                    f"{body.name(gpu)} has {has}; {others} {like}",
                    _like_siblings(body, gpu, kind, most),
                )


def fewer_gpus(body: Body) -> Iterator[Finding]:
    """Hosts with fewer GPUs than most, or than the other one."""
    number = {host: len(gpus) for host, gpus in body.hosts("gpu")}
    like = usual(number.values(), tie=True) if len(number) > 1 else None
    fewer = {host: gpus for host, gpus in number.items() if like and gpus < like}
    for host, gpus in fewer.items() if not meant_so(len(fewer), len(number)) else ():
        others = the_others(sum(gpus == like for gpus in number.values()), "host")
        yield Finding(
            "fewer-gpus", f"host {host} has {gpus} GPU{'s' * (gpus > 1)}; {others} {like} each"
        )


def missing_pairs(body: Body) -> Iterator[Finding]:
    """Pairs of GPUs without a link, in what is nearly a full mesh."""
    for _, gpus in _domains(body):
        for kind in BETWEEN[:2]:
            inside = set(gpus)
            pairs = {
                ends: speed
                for gpu in gpus
                for ends in body.near[gpu]
                if (speed := body.links[ends]) and ends.kind == kind and ends.dst in inside
            }
            joined = {frozenset((ends.src, ends.dst)) for ends in pairs}
            full = len(gpus) * (len(gpus) - 1) // 2
            like = usual(pairs.values())
            if like is None or len(joined) == full or len(joined) < _NEARLY * full:
                continue
            degree = {gpu: sum(gpu in pair for pair in joined) for gpu in gpus}
            most = usual(degree.values(), tie=True) or 0  # if all have as few, it is meant so
            for i, a in enumerate(gpus):
                for b in gpus[i + 1 :]:
                    if frozenset((a, b)) not in joined and max(degree[a], degree[b]) < most:
                        ends = Ends(kind, a, b)
                        yield Finding(
                            "missing-pair",
                            f"{body.name(a)} and {body.name(b)} have no {WORDS[kind]}; all other "
                            f"pairs have {like.words(kind)}",
                            {ends: like, ends.back: like},
                        )


def slower_pcie(body: Body) -> Iterator[Finding]:
    """PCIe and CPU links at a lower width or speed than their siblings, or of unknown speed."""
    groups: dict[tuple[object, ...], list[Ends]] = defaultdict(list)
    for ends in body.links:
        if ends.kind in ("pcie", "cpu"):
            a, b = body.parts[ends.src], body.parts[ends.dst]
            port = next((p.port for p in (a, b) if p.kind == "nic"), None)
            sides = {(body.parts[end].kind, bool(body.to_kind(end, "gpu"))) for end in ends[1:]}
            key = a.host, ends.kind, frozenset(sides), port
            if {a.kind, b.kind} == {"nic", "cpu"}:
                continue  # adapters right on a CPU are for all sorts of things
            if (a.kind, ends.src) <= (b.kind, ends.dst):  # the way back is the same cable
                groups[key].append(ends)
    for siblings in groups.values():
        speeds = [body.links[ends] for ends in siblings]
        like = usual(speeds, tie=True) if len(speeds) > 1 else None
        if like is None:
            continue
        lower = [ends for ends in siblings if body.links[ends] < like]
        gpus = any(body.parts[end].kind == "gpu" for end in siblings[0][1:])
        if meant_so(len(lower), len(siblings)) and not gpus:
            continue  # such as adapters for storage
        for ends in lower:
            word = WORDS[ends.kind]
            has, most = _words(ends.kind, body.links[ends], like)
            yield Finding(
                "slower-link",
                f"the {word} link of {body.name(ends.src)} and {body.name(ends.dst)} has {has}; "
                f"most like it have {most}",
                {ends: like, ends.back: like},
            )


def _words(kind: str, slow: Speed, like: Speed) -> tuple[str, str]:
    """What two links have, and what most have: the speed of a lane where lanes are as many."""
    each = [gigatransfers_of(speed.rate / speed.count) for speed in (slow, like)]
    if kind == "pcie" and slow.count == like.count > 1 and all(each):
        has, most = (
            f"{speed:g} GT/s, {format_bandwidth(link.rate)}"
            for speed, link in zip(each, (slow, like), strict=True)
        )
        return has, most
    return slow.words(kind), like.words(kind)


def lonely(body: Body) -> Iterator[Finding]:
    """PCI switches and CPUs with fewer GPUs or adapters than those beside them."""
    for _, switches in body.hosts("pci"):
        for what, beside in (("gpu", "nic"), ("nic", "gpu")):
            having = {
                switch: len(body.to_kind(switch, what))
                for switch in switches
                if body.to_kind(switch, beside)
            }
            yield from _fewer(body, having, what)
            alone = {
                switch: len(body.to_kind(switch, what))
                for switch in switches
                if body.to_kind(switch, what) and switch not in having
            }
            yield from _fewer(body, alone, what)
    for _, cpus in body.hosts("cpu"):
        below = {cpu: _gpus_below(body, cpu) for cpu in cpus}
        yield from _fewer(body, {cpu: number for cpu, number in below.items() if number}, "gpu")


def _fewer(body: Body, having: dict[int, int], what: str) -> Iterator[Finding]:
    """Those of a few parts that have less below them than most."""
    word = {"gpu": "GPU", "nic": "adapter"}[what]
    like = usual(having.values(), tie=what == "gpu")
    fewer = {part: number for part, number in having.items() if like and number < like}
    for part, number in fewer.items() if not meant_so(len(fewer), len(having)) else ():
        yield Finding(
            f"fewer-{word.lower()}s",
            f"{body.name(part)} has {number or 'no'} {word}{'s' * (number > 1)} below it; most "
            f"like it have {like}",
        )


def slower_ports(body: Body) -> Iterator[Finding]:
    """Adapters beside GPUs whose ports are slower than those of the others, or do not say."""
    for _, nics in body.hosts("nic"):
        beside = [
            nic
            for nic in nics
            if any(body.to_kind(pci, "gpu") for pci in body.to_kind(nic, "pci", "cpu"))
        ]
        ports = {nic: body.parts[nic].port for nic in beside}
        rates = {nic: port.nominal if port else 0 for nic, port in ports.items()}
        like = usual(rates.values())
        for nic, rate in rates.items():
            if like and rate < like:
                says = format_bandwidth(rate) if rate else "no speed"
                others = the_others(sum(r == like for r in rates.values()), "adapter")
                yield Finding(
                    "slower-port",
                    f"{body.name(nic)} says {says} for its port; {others} {format_bandwidth(like)}",
                )


def _domains(body: Body) -> list[tuple[str, list[int]]]:
    """The GPUs that should be alike: those of a host, or of all hosts one NVSwitch joins."""
    hosts = body.hosts("gpu")
    shared = [part for part in body.machine.of_kind("nvswitch") if not body.parts[part].host]
    if shared and len(hosts) > 1:
        return [("", body.machine.of_kind("gpu"))]
    return hosts


def _total(body: Body, gpu: int, kind: str) -> Speed:
    """All of a GPU's links of a kind."""
    speeds = [body.links[ends] for ends in body.near[gpu] if ends.kind == kind]
    return Speed(sum(s.rate for s in speeds), sum(s.count for s in speeds))


def _like_siblings(body: Body, gpu: int, kind: str, most: Speed) -> dict[Ends, Speed]:
    """The links that a GPU would have if it were like the others: to a switch or a CPU only."""
    towards = Counter(
        ends.dst
        for ends, speed in body.links.items()
        if ends.kind == kind
        and speed == most
        and body.parts[ends.src].host == body.parts[gpu].host
        and body.parts[ends.dst].kind == "nvswitch"
    )
    if not towards:  # GPUs to GPUs: the rules for pairs know which
        return {}
    ends = Ends(kind, gpu, towards.most_common(1)[0][0])
    return {ends: most, ends.back: most}


def _gpus_below(body: Body, cpu: int) -> int:
    """GPUs on a CPU, or on PCI switches that hang on it."""
    seen, waiting, found = {cpu}, [cpu], 0
    while waiting:
        for ends in body.near[waiting.pop()]:
            kind = body.parts[ends.dst].kind
            if ends.kind != "pcie" or ends.dst in seen or kind not in ("pci", "gpu"):
                continue
            seen.add(ends.dst)
            found += kind == "gpu"
            if kind == "pci":
                waiting.append(ends.dst)
    return found
