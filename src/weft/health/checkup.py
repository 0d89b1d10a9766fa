"""All that looks wrong, the worst first, and what it costs against the healthy twin."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weft.api import bound
from weft.errors import InputError, WeftError
from weft.health import fabric, hosts
from weft.health.finding import Body, Finding, Repair, Speed
from weft.quoting import counted
from weft.topology import Topology, load_topology
from weft.topology.files import read_machine
from weft.topology.labels import Wishes
from weft.topology.load import is_path, parse_wishes, wishes_by_kind
from weft.topology.machines import Cable, Machine, network_of
from weft.topology.machines.machine import ENDPOINTS
from weft.topology.machines.network import check_kinds
from weft.topology.machines.networks import joined_of, machine_of
from weft.topology.rates import NOMINAL, Rate

COLLECTIVES = ("all-reduce", "all-to-all")
SIZE = "1GiB"
"""So large that bandwidth decides."""
MOST_WEIGHED, MANY = 12, 256
"""Findings whose own cost is worked out; all others share in the sum. Among more NPUs it is fewer,
as each takes longer."""

Rule = Callable[[Body], Iterator[Finding]]
RULES: tuple[Rule, ...] = (
    fabric.islands,
    hosts.fewer_links,
    hosts.fewer_gpus,
    hosts.missing_pairs,
    hosts.one_sided,
    fabric.missing_adapters,
    fabric.fewer_ways,
    fabric.missing_uplinks,
    fabric.slower_links,
    fabric.crossed_rails,
    hosts.lonely,
    hosts.slower_ports,
    hosts.slower_pcie,
    fabric.oversubscribed,
)
"""In this order where the cost is the same."""


FAILURES = ("without_links", "without_npus", "without_switches", "degraded_links")
"""What `load_topology` takes of them."""
MEANT: tuple[Rule, ...] = (fabric.oversubscribed,)
"""What may cost something even where nothing is broken."""


@dataclass(frozen=True)
class Checkup:
    """What `check_machine` finds.

    Attributes
    ----------
    name
        Of the network.
    npus
        How many it has.
    findings
        The worst first.
    losses
        By collective, the share of its speed that all of them cost together; None where no bound
        tells.
    notes
        What was not known or not weighed.
    """

    name: str
    npus: int
    findings: tuple[Finding, ...]
    losses: dict[str, float | None]
    notes: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether nothing looks wrong."""
        return not self.findings

    def lines(self) -> list[str]:
        """The same for people, a line each."""
        name = f"{self.name}, {counted({'NPU': self.npus})}"
        if self:
            lines = [f"{name}: nothing looks wrong"]
        else:
            number = len(self.findings)
            lines = [f"{name}: {number} thing{'s' * (number > 1)} look{'s' * (number == 1)} wrong"]
            lines += [f"  {one.text}{_cost(one.losses)}" for one in self.findings]
            if number > 1 and _cost(self.losses):
                lines.append(f"  all together{_cost(self.losses)}")
        return lines + [f"note: {note}" for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """What ``weft topo check --json`` prints."""
        return {
            "topology": self.name,
            "npus": self.npus,
            "healthy": bool(self),
            "findings": [
                {"rule": one.rule, "text": one.text, "losses": one.losses} for one in self.findings
            ],
            "losses": self.losses,
            "notes": list(self.notes),
        }


def check(spec_or_path: str | os.PathLike[str], **said: Any) -> Checkup:
    """Check a network by spec or by file; `said` is what `load_topology` takes.

    The file of a machine is looked at whole, with adapters that lead nowhere too. Where failures
    are known, they are what is wrong.
    """
    kept = {name: value for name, value in said.items() if name not in FAILURES or not value}
    if kept.keys() != said.keys():
        whole = load_topology(spec_or_path, **kept)
        return _check_failures(load_topology(spec_or_path, **said), whole)
    if not is_path(spec_or_path):  # by name, all is as it is meant to be
        return check_topology(load_topology(spec_or_path, **said), rules=MEANT)
    wishes, *_ = parse_wishes(said.get("bandwidth"), said.get("latency"), said.get("nvlink"))
    machine = read_machine(spec_or_path, wishes)
    if machine is None:
        return check_topology(load_topology(spec_or_path, **said))
    words = {name: said.get(name) for name in ("bandwidth", "latency", "nvlink")}
    wishes = wishes_by_kind(**words, rates=said.get("rates", NOMINAL))
    check_kinds(machine, wishes)
    return check_machine(machine, wishes)


def check_topology(topology: Topology, rules: Sequence[Rule] | None = None) -> Checkup:
    """Check a network that is not the file of a machine.

    Where all NPUs are alike, none is held against the others. Where failures are known, they are
    what is wrong.
    """
    if topology.whole is not None:
        return _check_failures(topology, topology.whole)
    if rules is None:
        joined = joined_of(topology)
        if joined is not None:
            return check_machine(joined)
        rules = MEANT if topology.symmetry.transitive else RULES
    return check_machine(machine_of(topology), rules=rules)


def _check_failures(topology: Topology, whole: Topology) -> Checkup:
    """What a network lacks of what it was."""
    machine, healthy = machine_of(topology), machine_of(whole)
    kinds = {(cable.src, cable.dst): cable.kind for cable in healthy.cables}
    machine.parts = healthy.parts  # with what is gone, leaves may pass for spines
    machine.cables = [replace(c, kind=kinds.get((c.src, c.dst), c.kind)) for c in machine.cables]
    body, before = Body(machine), Body(healthy)
    lost = {
        ends: speed
        for ends, speed in before.links.items()
        if body.links.get(ends, Speed(0, 0)) < speed
    }
    npus = sorted(topology.removed - whole.removed)
    bare = [part for part in before.near if part >= topology.npus and not body.near[part]]
    found = []
    for part in (*npus, *bare):
        own = {ends: lost.pop(ends) for ends in list(lost) if part in ends[1:]}
        name = body.parts[part].name
        if part < topology.npus:
            found.append(Finding("failed", f"NPU {part} has failed", own))
        elif own:
            found.append(Finding("failed", f"switch {name} has no link left", own))
    while lost:
        ends, speed = next(iter(lost.items()))
        both = lost.get(ends.back) == speed and body.links.get(ends) == body.links.get(ends.back)
        repair = {one: lost.pop(one) for one in ((ends, ends.back) if both else (ends,))}
        way = "-" if both else " > "
        now = body.links.get(ends)
        text = f"the link {body.parts[ends.src].name}{way}{body.parts[ends.dst].name} is "
        text += f"{now.words(ends.kind) if now else 'gone'}; it was {speed.words(ends.kind)}"
        found.append(Finding("failed", text, repair))
    left = [npu for npu in range(topology.npus) if npu not in topology.removed]
    return _check(machine, found, Wishes(), left)


def check_machine(
    machine: Machine, wishes: Wishes | None = None, rules: Sequence[Rule] = RULES
) -> Checkup:
    """Look for what seems wrong, and weigh it.

    Parameters
    ----------
    wishes
        What is said of the machine beside its file.
    """
    body = Body(machine)
    found = _distinct(finding for rule in rules for finding in rule(body))
    found += [Finding("contradiction", text) for text in machine.doubts]
    return _check(machine, found, wishes or Wishes())


def _check(
    machine: Machine, found: list[Finding], wishes: Wishes, left: list[int] | None = None
) -> Checkup:
    """Weigh what was found; `left` are the NPUs that have not failed."""
    notes = list(machine.notes)
    all_npus = machine.of_kind(ENDPOINTS[0]) or machine.of_kind(ENDPOINTS[1])
    npus = list(range(len(all_npus))) if left is None else left
    losses: dict[str, float | None] = dict.fromkeys(COLLECTIVES, None if found else 0.0)
    try:
        if any(one.repair for one in found):
            losses = _weighed(machine, [one for one in found if one.repair], wishes, npus, notes)
    except InputError as error:
        notes.append(f"what it costs is not known: {error}")
    found.sort(key=lambda one: -one.worst)
    return Checkup(machine.name, len(npus), tuple(found), losses, tuple(notes))


def _weighed(
    machine: Machine, found: list[Finding], wishes: Wishes, npus: list[int], notes: list[str]
) -> dict[str, float | None]:
    """What all of them cost together; says in each what it costs alone."""
    repairs = [one.repair for one in found]
    healthy = _times(_repaired(machine, repairs), wishes, npus)
    losses = _losses(_times(machine, wishes, npus), healthy)
    if not any(losses.values()):  # nor does any of them
        for one in found:
            one.losses = dict(losses)
        return losses
    weighed = found[: max(1, MOST_WEIGHED * MANY // max(len(npus), MANY))]
    for one in weighed:
        others = [repair for repair in repairs if repair is not one.repair]
        alone = _repaired(machine, others) if others else machine
        one.losses = _losses(_times(alone, wishes, npus), healthy)
    if len(weighed) < len(found):
        notes.append(
            f"the cost of {len(weighed)} of {len(found)} findings was worked out one by one"
        )
    return losses


def _distinct(findings: Iterable[Finding]) -> list[Finding]:
    """Each fault once: of two findings that mend the same cables the first stays."""
    kept: list[Finding] = []
    mended: set[Any] = set()
    for one in findings:
        new = {ends for ends in one.repair if ends not in mended}
        if not one.repair or new:
            kept.append(one)
            mended |= new
    return kept


def _repaired(machine: Machine, repairs: Iterable[Repair]) -> Machine:
    """The machine with cables as they would be."""
    wanted: Repair = {}
    for repair in repairs:
        for ends, speed in repair.items():
            wanted[ends] = max(speed, wanted.get(ends, speed))
    like = {cable.kind: cable for cable in machine.cables}
    cables = [c for c in machine.cables if (c.kind, c.src, c.dst) not in wanted]
    for ends, speed in wanted.items():
        latency = like[ends.kind].latency if ends.kind in like else None
        rate = Rate(speed.rate, speed.rate) if speed.rate else None
        cables.append(Cable(*ends, rate, speed.count, latency))
    return replace(machine, cables=cables)


def _times(machine: Machine, wishes: Wishes, npus: list[int]) -> dict[str, int | None]:
    """The time that each collective takes these NPUs at least; None where it cannot be done."""
    network = network_of(machine, wishes)
    group = npus if len(npus) < network.npus else None
    times: dict[str, int | None] = {}
    for name in COLLECTIVES:
        try:
            times[name] = bound(network, name, SIZE, group=group).ideal if len(npus) > 1 else None
        except InputError:
            raise
        except WeftError:  # some NPUs cannot reach others
            times[name] = None
    return times


def _losses(
    times: dict[str, int | None], healthy: dict[str, int | None]
) -> dict[str, float | None]:
    """The share of the healthy twin's speed that is lost."""
    losses: dict[str, float | None] = {}
    for name, time in times.items():
        best = healthy.get(name)
        if best is None:
            losses[name] = None
        else:
            losses[name] = 1.0 if time is None else max(0.0, 1 - best / time)
    return losses


def _cost(losses: dict[str, float | None]) -> str:
    """``: costs All-Reduce 90 %, All-to-All 88 %``."""
    known = {name: loss for name, loss in losses.items() if loss is not None}
    if not known:
        return ""
    if not any(known.values()):
        return ": costs nothing by the bounds"
    said = ", ".join(f"{name} {_percent(loss)}" for name, loss in known.items())
    return f": costs {said}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share == 0 or share >= 0.095 else f"{share:.1%}"
