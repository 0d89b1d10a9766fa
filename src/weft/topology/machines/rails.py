"""Rails of a fabric: adapters of one place in all hosts, on leaves of their own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

Plugged = Mapping[str, Mapping[str, list[int]]]
"""By host and adapter, the switches that it hangs on."""

_STRAY = 0.1  # of the adapters of a leaf: so few of another rail are cables that were swapped


@dataclass(frozen=True)
class Stray:
    """An adapter on a leaf of another rail."""

    host: str
    adapter: str
    leaf: int
    rail: tuple[str, ...]


def rails_of(plugged: Plugged) -> tuple[list[tuple[str, ...]], list[Stray]]:
    """The names of adapters that make a rail each, and those that hang on another's leaf.

    Adapters of one rail may have several names, as hosts name them differently. There are no rails
    where leaves have adapters of several places.
    """
    on: dict[int, Counter[str]] = defaultdict(Counter)
    for adapters in plugged.values():
        for name, leaves in adapters.items():
            for leaf in leaves:
                on[leaf][name] += 1
    rail = {name: name for names in on.values() for name in names}

    def root(name: str) -> str:
        while rail[name] != name:
            name = rail[name]
        return name

    for names in on.values():
        usual, most = names.most_common(1)[0]
        for name, number in names.items():
            if number > 2 or number > _STRAY * (most + number):
                rail[root(name)] = root(usual)
    several = any(
        len({root(name) for name in adapters}) < len(adapters) for adapters in plugged.values()
    )
    members: dict[str, list[str]] = defaultdict(list)
    for name in rail:
        members[root(name)].append(name)
    if several or len(members) < 2:
        return [], []
    strays = [
        Stray(host, name, leaf, tuple(members[root(on[leaf].most_common(1)[0][0])]))
        for host, adapters in plugged.items()
        for name, leaves in adapters.items()
        for leaf in leaves
        if root(name) != root(on[leaf].most_common(1)[0][0])
    ]
    return [tuple(names) for names in members.values()], strays
