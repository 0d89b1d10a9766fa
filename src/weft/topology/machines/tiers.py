"""What the switches of a fabric are called: leaf, spine, core, by the way to the hosts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from weft.topology.machines.machine import Machine

TIERS = ("leaf", "spine", "core")


def tier_name(level: int) -> str:
    """The name of the switches so many links above what hangs on the fabric, from 1."""
    return TIERS[level - 1] if level <= len(TIERS) else f"tier{level}"


def name_tiers(
    machine: Machine, ends: tuple[str, ...] = ("nic", "host"), but: Collection[int] = ()
) -> None:
    """Call switches by their tier, and each link between switches, or up to one, by its upper end.

    Parameters
    ----------
    ends
        Kinds of parts that hang on leaves.
    but
        Numbers of parts that may hang anywhere, such as the adapters of what manages the fabric.
    """
    level = {part: 0 for part in machine.of_kind(*ends) if part not in but}
    near: dict[int, list[int]] = {}
    for cable in machine.cables:
        near.setdefault(cable.src, []).append(cable.dst)
        near.setdefault(cable.dst, []).append(cable.src)
    switches = set(machine.of_kind("switch"))
    frontier = list(level)
    while frontier:
        reached = dict.fromkeys(
            other
            for part in frontier
            for other in near.get(part, ())
            if other in switches and other not in level
        )
        level |= dict.fromkeys(reached, level[frontier[0]] + 1)
        frontier = list(reached)
    for part in switches & level.keys():
        machine.parts[part] = replace(machine.parts[part], kind=tier_name(level[part]))
    for i, cable in enumerate(machine.cables):
        ends_at = [level.get(end, 0) for end in (cable.src, cable.dst) if end in switches]
        top = max(ends_at, default=0)
        if top:
            beside = "-beside" if ends_at == [top, top] else ""
            machine.cables[i] = replace(cable, kind=tier_name(top) + beside)
