"""Slurm's ``topology.yaml``: several topologies, each a tree, blocks, rings, tori or flat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from weft.documents import Document
from weft.errors import InputError
from weft.quoting import brief, quoted
from weft.topology.labels import Wishes
from weft.topology.machines.hostlist import MOST, names_of
from weft.topology.machines.machine import Machine
from weft.topology.machines.plain import At, called, listing, mapping, whole
from weft.topology.machines.reader import READERS, Reader
from weft.topology.machines.slurm import BLOCKS, FLAT, Grid
from weft.topology.machines.tree import Place, Tree

TITLE = "a topology.yaml of Slurm"
KINDS = ("tree", "block", "flat", "ring", "torus3d")
MAX_SIDE = 1 << 16
_BEGINS = re.compile(r'^[ \t]*(?:-\s+|\[\s*\{\s*|-\s*\{\s*)"?topology"?\s*:\s*\S', re.MULTILINE)


def recognise(document: Document) -> bool:
    return bool(_BEGINS.search(document.text[:65536]))


def read(document: Document, wishes: Wishes) -> Machine:  # noqa: ARG001 - rates come later
    topologies = [_Topology(item, (i,)) for i, item in enumerate(listing(document.plain(), ()))]
    if not topologies:
        raise Place(1).wrong("no topology is in it")
    default = next((one for one in topologies if one.default), topologies[0])
    machine = default.machine(document.path.stem, topologies)
    others = [f"{quoted(one.name)} ({one.kind})" for one in topologies if one is not default]
    if others:
        machine.notes.append(
            f"read: topology {quoted(default.name)}, the default of the cluster; not read: "
            f"{brief(', '.join(others), 200)}"
        )
    return machine


class _Topology:
    """One of the topologies of a file."""

    def __init__(self, item: Any, at: At) -> None:
        self.at = at
        self.item = mapping(item, at, "a topology")
        self.name = called(self.item, "topology", at)
        self.default = self.item.get("cluster_default") is True
        kinds = [kind for kind in KINDS if kind in self.item]
        if len(kinds) != 1:
            raise Place(path=at).wrong(
                f"topology {quoted(self.name)} is {' and '.join(kinds) or 'of no known kind'}; "
                f"expected one of {', '.join(KINDS)}"
            )
        self.kind = kinds[0]
        self.left = MOST

    def machine(self, name: str, all_of_them: Sequence[_Topology]) -> Machine:
        if self.kind == "tree":
            return self.tree().machine(name, TITLE)
        if self.kind in ("ring", "torus3d"):
            return self.grid().machine(name, TITLE)
        why = BLOCKS if self.kind == "block" else FLAT
        others = [one.name for one in all_of_them if one.kind in ("tree", "ring", "torus3d")]
        more = f"; cluster_default: true can choose {quoted(others[0])} instead" if others else ""
        raise Place(path=(*self.at, self.kind)).wrong(f"topology {quoted(self.name)}: {why}{more}")

    def tree(self) -> Tree:
        tree = Tree()
        for item, at in self.items("tree", "switches"):
            place = Place(path=at)
            name = called(item, "switch", at)
            tree.switch(name, place)
            tree.add(name, place, self.names(item, "children", at), self.names(item, "nodes", at))
        return tree

    def grid(self) -> Grid:
        grid = Grid()
        if self.kind == "ring":
            for item, at in self.items("ring", "rings"):
                grid.ring(called(item, "ring", at), self.names(item, "nodes", at), Place(path=at))
            return grid
        for item, at in self.items("torus3d", "toruses"):
            name = f"torus {quoted(called(item, 'name', at))}"
            if "regions" in item:
                raise Place(path=(*at, "regions")).wrong(
                    f"{name} places its hosts by regions, which are not read; expected nodes"
                )
            dims = mapping(item.get("dims"), (*at, "dims"), "dims")
            sizes = [whole(dims, side, (*at, "dims"), MAX_SIDE) for side in "xyz"]
            grid.torus(name, sizes, self.names(item, "nodes", at), Place(path=at))
        return grid

    def items(self, kind: str, key: str) -> Iterator[tuple[dict[str, Any], At]]:
        """The items of the list below a kind, each with its place."""
        at = (*self.at, kind)
        found = mapping(self.item[kind], at, kind).get(key)
        for i, item in enumerate(listing(found, (*at, key))):
            yield mapping(item, (*at, key, i), f"an item of {key}"), (*at, key, i)

    def names(self, item: dict[str, Any], key: str, at: At) -> list[str]:
        """A list of names; none if the key is not there."""
        if key not in item:
            return []
        try:
            names = names_of(called(item, key, at), self.left)
        except InputError as error:
            raise Place(path=(*at, key)).wrong(str(error)) from None
        self.left -= len(names)
        return names


READERS.add("slurm-yaml", Reader(name="slurm-yaml", title=TITLE, recognise=recognise, read=read))
