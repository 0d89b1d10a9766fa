"""What looks wrong between hosts: adapters, leaves, spines and the links up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from weft.health.finding import Body, Ends, Finding, Repair, Speed, meant_so, usual
from weft.topology.machines.rails import rails_of
from weft.topology.machines.tiers import tier_name
from weft.units import format_bandwidth

_IN_HOSTS = ("pcie", "cpu", "nvlink", "xgmi", "c2c", "host", "link", "box")


def slower_links(body: Body) -> Iterator[Finding]:
    """Links of the fabric that are slower than their siblings, a cable each."""
    groups: dict[tuple[object, ...], list[Ends]] = defaultdict(list)
    for ends in body.links:
        a, b = body.parts[ends.src], body.parts[ends.dst]
        if (
            ends.kind not in ("pcie", "cpu", "nvlink", "xgmi", "c2c", "host")
            and ends.src < ends.dst
        ):
            groups[(ends.kind, frozenset((a.kind, b.kind)))].append(ends)
    for siblings in groups.values():
        each = {ends: [_each(cable) for cable in body.cables[ends]] for ends in siblings}
        rates = [rate for cables in each.values() for rate in cables]
        like = usual(rates, tie=True) if len(rates) > 1 else None
        lower = sum(rate < like for rate in rates) if like else 0
        if siblings[0].kind == "link" and meant_so(lower, len(rates)):
            continue  # between NPUs, such as rings of two speeds
        for ends, cables in each.items():
            slow = [rate for rate in cables if like and rate < like]
            if like and slow:
                count = body.links[ends].count
                speed = Speed(max(like * count, body.links[ends].rate), count)
                says = format_bandwidth(min(slow)) if min(slow) else "an unknown rate"
                which = (
                    "the link"
                    if len(slow) == len(cables)
                    else (f"{len(slow)} of {len(cables)} cables")
                )
                has = "has" if len(slow) in (1, len(cables)) else "have"
                yield Finding(
                    "slower-link",
                    f"{which} of {body.name(ends.src)} and {body.name(ends.dst)} {has} {says}; "
                    f"most like it have {format_bandwidth(like)}",
                    {ends: speed, ends.back: speed} | _to_host(body, ends, speed),
                )


def _to_host(body: Body, ends: Ends, speed: Speed) -> Repair:
    """The cables between an adapter and what stands for its host: as fast as its port."""
    nics = [end for end in ends[1:] if body.parts[end].kind == "nic"]
    inner = [one for nic in nics for one in body.near[nic] if one.kind == "host"]
    return {one: speed for way in inner for one in (way, way.back)}


def missing_uplinks(body: Body) -> Iterator[Finding]:
    """Switches with fewer links up than their siblings, or none to a switch that these reach."""
    for lower, upper in _tiers(body):
        above = {switch: _up(body, switch, upper) for switch in body.machine.of_kind(lower)}
        for siblings in _families(above):
            totals = {switch: sum(above[switch].values()) for switch in siblings}
            most = usual(totals.values(), tie=True) if len(siblings) > 1 else None
            for switch, total in totals.items():
                if most is None or total >= most:
                    continue
                repair, gaps = _gaps(body, switch, siblings, above)
                where = f": {', '.join(gaps)}" if gaps else ""
                yield Finding(
                    "missing-uplink",
                    f"{body.name(switch)} has {total or 'no'} link{'s' * (total != 1)} up; most "
                    f"like it have {most}{where}",
                    repair,
                )


def missing_adapters(body: Body) -> Iterator[Finding]:
    """Hosts with fewer adapters in the fabric than most."""
    plugged = _plugged(body)
    most = usual(len(adapters) for adapters in plugged.values())
    if most is None or len(plugged) < 3:
        return
    alike = [adapters for adapters in plugged.values() if len(adapters) == most]
    common = Counter(name for adapters in alike for name in adapters)
    fewer: dict[tuple[int, tuple[str, ...]], list[str]] = defaultdict(list)
    for host, adapters in plugged.items():
        usually = (name for name, n in common.items() if 2 * n > len(alike))
        if len(adapters) < most:
            missing = tuple(sorted(name for name in usually if name not in adapters))
            fewer[len(adapters), missing].append(host)
    for (number, lost), hosts in fewer.items():
        repair: Repair = {}
        for host in hosts:
            repair |= _plug(body, host, lost, plugged)
        what = f"host {hosts[0]} has" if len(hosts) == 1 else f"{len(hosts)} hosts have"
        yield Finding(
            "missing-adapter",
            f"{what} {number or 'no'} adapter{'s' * (number != 1)} in the fabric; {len(alike)} "
            f"hosts have {most}"
            + (f"; missing: {', '.join(_placed(body, hosts[0], lost))}" if lost else "")
            + (f"; {', '.join(hosts)}" if len(hosts) > 1 else ""),
            repair,
        )


def _placed(body: Body, host: str, adapters: Iterable[str]) -> Iterator[str]:
    """Adapters with the PCI switch they hang on, such as ``mlx5_1 (pci 0000:41:00.0)``."""
    own = {
        body.parts[nic].name: nic
        for nic in body.machine.of_kind("nic")
        if body.parts[nic].host == host
    }
    for name in adapters:
        above = body.to_kind(own[name], "pci") if name in own else []
        yield f"{name} (pci {body.parts[above[0]].name})" if above else name


def fewer_ways(body: Body) -> Iterator[Finding]:
    """GPUs of no known host with fewer links to leaves, or into their box, than most."""
    gpus = [gpu for gpu in body.machine.of_kind("gpu") if not body.parts[gpu].host]
    for kind in ("leaf", "box"):
        ways = {gpu: [ends for ends in body.near[gpu] if ends.kind == kind] for gpu in gpus}
        most = usual(map(len, ways.values()))
        here = {end: len(body.to_kind(end, "gpu")) for end in body.machine.of_kind(kind)}
        rare = Counter(here.values())
        gaps = [end for end, number in here.items() if rare[number] == 1 and number + 1 in rare]
        for gpu, own in ways.items():
            if most is None or len(own) >= most:
                continue
            near = next((body.links[one[0]] for one in ways.values() if one), None)
            lost = Ends(kind, gpu, gaps[0]) if len(gaps) == most - len(own) == 1 else None
            yield Finding(
                "fewer-links",
                f"{body.name(gpu)} has {len(own) or 'no'} link{'s' * (len(own) != 1)} to "
                f"{'leaves' if kind == 'leaf' else 'the switch of a box'}; most have {most}",
                {lost: near, lost.back: near} if lost and near else {},
            )


def crossed_rails(body: Body) -> Iterator[Finding]:
    """Adapters on a leaf of another rail, where leaves are of one rail each."""
    for stray in rails_of(_plugged(body))[1]:
        yield Finding(
            "crossed-rail",
            f"{stray.adapter} of {stray.host} hangs on {body.name(stray.leaf)}, a leaf of "
            f"{' and '.join(stray.rail)}",
        )


def oversubscribed(body: Body) -> Iterator[Finding]:
    """Levels whose switches have less bandwidth up, or aside, than down to what computes."""
    hosts = {body.parts[end].host for end in body.machine.of_kind("gpu", "host")}
    others = {nic for nic in body.machine.of_kind("nic") if body.parts[nic].host not in hosts}
    for lower, upper in _tiers(body):
        repair: dict[Ends, Speed] = {}
        worst, where, number = 1.0, -1, 0
        for switch in body.machine.of_kind(lower):
            up = [ends for ends in body.near[switch] if body.parts[ends.dst].kind in upper]
            down = sum(
                body.links[ends].rate
                for ends in body.near[switch]
                if ends not in up and body.parts[ends.dst].kind != lower and ends.dst not in others
            )
            rate = sum(body.links[ends].rate for ends in up)
            # A spine between two leaves only is a link of a network: aside, to the other leaf.
            down -= sum(
                body.links[ends].rate
                for ends in body.near[switch]
                if body.parts[ends.dst].kind == lower
            )
            if not rate or down <= rate * 1.001:
                continue
            number += 1
            if down / rate > worst:
                worst, where = down / rate, switch
            for ends in up:
                speed = body.links[ends]
                faster = Speed(-(-speed.rate * down // rate), speed.count)
                repair |= {ends: faster, ends.back: faster}
        if number:
            yield Finding(
                "oversubscribed",
                f"{number} of {len(body.machine.of_kind(lower))} {_plural(lower)} carry more down "
                f"than up, the worst {worst:.2f}:1: {body.name(where)}",
                repair,
            )


def islands(body: Body) -> Iterator[Finding]:
    """GPUs, or hosts, that are not joined to the others."""
    ends = body.machine.of_kind("gpu") or body.machine.of_kind("host")
    apart: list[list[int]] = []
    seen: set[int] = set()
    for start in ends:
        if start in seen:
            continue
        reached, waiting = {start}, [start]
        while waiting:
            for link in body.near[waiting.pop()]:
                if link.dst not in reached:
                    reached.add(link.dst)
                    waiting.append(link.dst)
        apart.append([end for end in ends if end in reached])
        seen |= reached
    if len(apart) > 1:
        apart.sort(key=len, reverse=True)
        for part in apart[1:]:
            named = body.name(part[0]) + (f" and {len(part) - 1} more" if len(part) > 1 else "")
            yield Finding(
                "disconnected", f"{named} cannot reach {body.name(apart[0][0])}: nothing joins them"
            )


def _tiers(body: Body) -> list[tuple[str, tuple[str, ...]]]:
    """Kinds of switches, each with the kinds above it."""
    kinds = {part.kind for part in body.parts}
    names = [tier_name(level) for level in range(1, 10)]
    there = [name for name in names if name in kinds]
    return [(name, tuple(there[i + 1 :])) for i, name in enumerate(there[:-1])]


def _each(speed: Speed) -> int:
    return speed.rate // speed.count


def _up(body: Body, switch: int, upper: tuple[str, ...]) -> dict[int, int]:
    """How many cables lead to each switch above."""
    found: dict[int, int] = {}
    for ends in body.near[switch]:
        if body.parts[ends.dst].kind in upper:
            found[ends.dst] = found.get(ends.dst, 0) + body.links[ends].count
    return found


def _families(above: dict[int, dict[int, int]]) -> list[list[int]]:
    """Switches that share most of what is above them, such as the leaves of a pod."""
    families: list[tuple[set[int], list[int]]] = []
    for switch, up in sorted(above.items(), key=lambda item: -len(item[1])):
        mine = set(up)
        for ups, members in families:
            if not mine or len(mine & ups) * 2 > len(mine):
                members.append(switch)
                break
        else:
            families.append((mine, [switch]))
    return [members for _, members in families]


def _gaps(
    body: Body,
    switch: int,
    siblings: Sequence[int],
    above: dict[int, dict[int, int]],
) -> tuple[dict[Ends, Speed], list[str]]:
    """What a switch lacks towards each one above, held against most of its siblings."""
    repair: dict[Ends, Speed] = {}
    gaps = []
    for top in sorted(set().union(*(above[one] for one in siblings))):
        like = usual((above[one].get(top, 0) for one in siblings), tie=True) or 0
        there = above[switch].get(top, 0)
        if there >= like:
            continue
        gaps.append(f"{there or 'no'} of {like} to {body.name(top)}")
        rate, kind = next(
            (_each(body.links[ends]), ends.kind)
            for one in siblings
            for ends in body.near[one]
            if ends.dst == top and one != switch
        )
        ends = Ends(kind, switch, top)
        repair |= {ends: Speed(rate * like, like), ends.back: Speed(rate * like, like)}
    return repair, gaps


Plugged = dict[str, dict[str, list[int]]]


def _plugged(body: Body) -> Plugged:
    """By host and adapter, the switches of the fabric it hangs on.

    A network has no adapters that only pass on: there what they hang on in their host leads to the
    fabric, by a link for each of them.
    """
    found: Plugged = {body.parts[end].host: {} for end in body.machine.of_kind("gpu", "host")}
    fabric = {tier_name(level) for level in range(1, 10)} | {"switch"}
    for number, part in enumerate(body.parts):
        if part.host not in found or not part.host or part.kind == "host":
            continue  # others manage the fabric
        leaves = body.to_kind(number, *fabric)
        if part.kind == "nic" and leaves:
            found[part.host][part.name] = leaves
        elif leaves:
            names = [part.name, *(f"{part.name}+{i}" for i in range(1, len(leaves)))]
            found[part.host] |= {name: [leaf] for name, leaf in zip(names, leaves, strict=True)}
    return found if any(found.values()) else {}


def _plug(body: Body, host: str, lost: Iterable[str], plugged: Plugged) -> dict[Ends, Speed]:
    """The cables of adapters that a host should have in the fabric."""
    repair: dict[Ends, Speed] = {}
    own = {part.name: i for i, part in enumerate(body.parts) if part.host == host}
    mine = {leaf for leaves in plugged[host].values() for leaf in leaves}
    for name in lost:
        # The leaf where its neighbours have theirs; else that of the rail with most ports left.
        near, rail = Counter[int](), Counter[int]()
        for adapters in plugged.values():
            rail.update(adapters.get(name, ()))
            if mine & {leaf for leaves in adapters.values() for leaf in leaves}:
                near.update(adapters.get(name, ()))
        nic = own.get(name, own.get(name.rpartition("+")[0], own.get(host)))
        if nic is None or not rail:
            continue
        leaf = max(near, key=near.__getitem__) if near else min(rail, key=rail.__getitem__)
        speed = usual(body.links[ends] for ends in body.near[leaf] if body.parts[ends.dst].host)
        if speed:
            ends = Ends("leaf", nic, leaf)
            repair |= {ends: speed, ends.back: speed}
    return repair


def _plural(kind: str) -> str:
    return {"leaf": "leaves"}.get(kind, f"{kind}s")
