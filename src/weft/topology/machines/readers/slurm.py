"""Slurm's ``topology.conf``: switches with the hosts and switches below them, or rings of hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from weft.documents import Document, PlacedError, read_bytes
from weft.errors import InputError
from weft.quoting import brief, counted, quoted
from weft.topology.labels import Wishes
from weft.topology.machines.hostlist import MOST, names_of
from weft.topology.machines.machine import Machine
from weft.topology.machines.reader import READERS, Reader
from weft.topology.machines.slurm import BLOCKS, Grid
from weft.topology.machines.tree import Place, Tree

TITLE = "a topology.conf of Slurm"
KEYS = {
    "switchname": ("switches", "nodes", "linkspeed"),
    "ringname": ("nodes",),
    "blockname": ("nodes",),
    "blocksizes": (),
}
"""What a line may begin with, and what may follow."""
MAX_FILES = 100
"""That are included, whether by the file or by one that it includes."""
MAX_BYTES = 16 << 20
_BEGINS = re.compile(
    r"^[ \t]*(?:SwitchName|BlockName|BlockSizes|RingName)\s*=", re.MULTILINE | re.IGNORECASE
)
_PAIR = re.compile(r'\s*(\w+)\s*=\s*("[^"]*"|[^\s"]+)')


def recognise(document: Document) -> bool:
    return bool(_BEGINS.search(document.text[:65536]))


def read(document: Document, wishes: Wishes) -> Machine:  # noqa: ARG001 - rates come later
    tree, rings = Tree(), Grid()
    blocks: list[Place] = []
    speeds = 0
    left = MOST
    for text, line in _lines(document.text, document.path.parent, count()):
        place = Place(line)
        found = _pairs(text, place)
        kind, name = next(iter(found.items()))
        if kind in ("blockname", "blocksizes"):
            blocks.append(place)
            continue
        speeds += "linkspeed" in found
        lists = {
            key: _names(found[key], left, place) for key in ("switches", "nodes") if key in found
        }
        left -= sum(map(len, lists.values()))
        if kind == "ringname":
            rings.ring(name, lists.get("nodes", []), place)
            continue
        if _names(name, left, place) != [name]:
            raise place.wrong(f"SwitchName={brief(name)} is several; expected a line for each")
        tree.switch(name, place)
        tree.add(name, place, lists.get("switches", ()), lists.get("nodes", ()))
    if blocks and not tree.switches and not rings.hosts:
        raise blocks[0].wrong(BLOCKS)
    machine = (
        rings.machine(document.path.stem, TITLE)
        if rings.hosts and not tree.switches
        else tree.machine(document.path.stem, TITLE)
    )
    if rings.hosts and tree.switches:
        machine.notes.append("left out: rings of hosts, as there are switches")
    if blocks:
        machine.notes.append(f"not read: blocks on {counted({'line': len(blocks)})}")
    if speeds:
        machine.notes.append(
            f"not read: LinkSpeed on {counted({'line': speeds})}, whose unit Slurm leaves open"
        )
    return machine


def _lines(text: str, folder: Path, files: Iterator[int], at: int = 0) -> Iterator[tuple[str, int]]:
    """Lines without comments, those that go on in the next as one, and those of other files.

    The lines of other files count as the line, `at`, that includes them.
    """
    whole, first = "", 0
    for line, part in enumerate(text.split("\n"), 1):
        part = part.partition("#")[0].rstrip()
        first = first or at or line
        if part.endswith("\\"):
            whole += part[:-1]
            continue
        whole = (whole + part).strip()
        include = re.fullmatch(r"(?i)include\s+(\S+)", whole)
        if include:
            yield from _included(folder / include[1], include[1], files, first)
        elif whole:
            yield whole, first
        whole, first = "", 0
    if whole.strip():
        yield whole.strip(), first


def _included(path: Path, name: str, files: Iterator[int], line: int) -> Iterator[tuple[str, int]]:
    """The lines of another file."""
    if next(files) >= MAX_FILES:
        raise PlacedError(f"includes more than {MAX_FILES} files", line=line)
    try:
        text = read_bytes(path, "topology", MAX_BYTES).decode()
    except InputError as error:
        why = f"includes {quoted(name)}, which cannot be read: {error}"
        raise PlacedError(why, line=line) from None
    except UnicodeDecodeError:
        raise PlacedError(f"includes {quoted(name)}, which is not UTF-8 text", line=line) from None
    yield from _lines(text, path.parent, files, line)


def _pairs(text: str, place: Place) -> dict[str, str]:
    """``Key=Value`` by key in small letters."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None:
            raise place.wrong(
                f"{quoted(text[at:].strip())} does not belong there; expected a line such as "
                "SwitchName=leaf1 Nodes=node[01-16]"
            )
        key, value = match[1].lower(), match[2].strip('"')
        allowed = KEYS.get(next(iter(found), key), ())
        if key in found or not (key in allowed if found else key in KEYS):
            raise place.wrong(
                f"{quoted(match[1])} does not belong there; expected SwitchName= with Switches= or "
                "Nodes=, or RingName= with Nodes="
            )
        found[key] = value
        at = match.end()
    return found


def _names(text: str, most: int, place: Place) -> list[str]:
    if text == "ALL":
        raise place.wrong("ALL stands for hosts that another file names; expected their names")
    try:
        return names_of(text, most)
    except InputError as error:
        raise place.wrong(str(error)) from None


READERS.add("slurm", Reader(name="slurm", title=TITLE, recognise=recognise, read=read))
