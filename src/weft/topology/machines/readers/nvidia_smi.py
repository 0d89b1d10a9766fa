"""What ``nvidia-smi topo -m`` prints: what joins each two of a host's GPUs and adapters.

Letters say how near two devices are on PCIe; ``NV#`` says how many NVLinks a pair has, or each of
both has into an NVSwitch. There are no rates in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from weft.documents import Document, PlacedError
from weft.quoting import brief, counted, quoted
from weft.topology.labels import Wishes
from weft.topology.machines.classes import Classes
from weft.topology.machines.machine import Cable, Machine, Part
from weft.topology.machines.reader import READERS, Reader
from weft.topology.rates import Rate

TITLE = "an output of `nvidia-smi topo -m`"
NEAR = {"PIX": 0, "PXB": 1, "PHB": 2, "NODE": 2, "SYS": 3, "SOC": 3}
"""How near two devices are: on one PCI switch, below one port of a CPU, in one NUMA node, or not.

PHB and NODE are both ways through the CPU of a NUMA node, which is one part, as in NCCL. SOC is
what older drivers call SYS.
"""
SWITCH, PORT, NODE, AWAY = range(4)
MAX_DEVICES = 256
MAX_LINKS = 1 << 10
INTO_SWITCH = (6, 8, 12, 18, 36)
"""NVLinks of the GPUs that are made for NVSwitches: V100, A800 and H800, A100, H100 to B300."""
MOST_DIRECT = 18
"""No GPU that is joined to other GPUs without a switch has more NVLinks."""
ADDING = 18
"""GPUs with so many NVLinks have switches that copy and add."""
_ESCAPE = re.compile(r"\x1b\[[0-9;]{0,8}[A-Za-z]")
_GPU = re.compile(r"GPU[0-9]{1,4}")
_HEADER = re.compile(r"[ \t]*GPU[0-9]{1,4}(?:[ \t]+[\w.:-]+)*[ \t]*")
_ROW = re.compile(r"[ \t]*GPU[0-9]{1,4}[ \t]+(?:X|NV[0-9]{1,4}|PIX|PXB|PHB|NODE|SYS|SOC)(?:\s|$)")
_TAIL = re.compile(r"CPU Affinity|NUMA Affinity|GPU NUMA ID")
_LEGEND = re.compile(r"\s*(NIC[0-9]{1,4}):\s+(\S{1,64})\s*")


def recognise(document: Document) -> bool:
    head = [_ESCAPE.sub("", line) for line in document.text[:65536].splitlines()]
    return any(
        _HEADER.fullmatch(line) and any(map(_ROW.match, head[i + 1 : i + 4]))
        for i, line in enumerate(head)
    )


def read(document: Document, wishes: Wishes) -> Machine:
    matrix = _matrix(document.text)
    machine = Machine(document.path.stem, TITLE)
    for name in matrix.names[: matrix.gpus]:
        machine.add(Part("gpu", name))
    _join_by_nvlink(machine, matrix, wishes)
    _join_by_pcie(machine, matrix)
    return machine


@dataclass
class _Matrix:
    """The cells of the file: `cells[a, b]` is what row a says of b."""

    line: int
    names: list[str]
    gpus: int
    cells: dict[tuple[int, int], str] = field(default_factory=dict)
    lines: dict[int, int] = field(default_factory=dict)
    affinity: dict[int, str] = field(default_factory=dict)
    adapters: dict[str, str] = field(default_factory=dict)

    def cell(self, a: int, b: int) -> str:
        """What joins two devices, from either row; empty if neither is there."""
        return self.cells.get((a, b)) or self.cells.get((b, a), "")


def _matrix(text: str) -> _Matrix:
    lines = [_ESCAPE.sub("", line) for line in text.splitlines()]
    first = next(
        i
        for i, line in enumerate(lines)
        if _HEADER.fullmatch(line) and any(map(_ROW.match, lines[i + 1 : i + 4]))
    )
    tail = len(_TAIL.findall(" ".join(lines[first].split())))
    names = re.split(r"\s(?:CPU|NUMA) Affinity", " ".join(lines[first].split()))[0].split()
    matrix = _Matrix(first + 1, names, sum(map(bool, map(_GPU.fullmatch, names))))
    _check_header(matrix)
    number = {name: i for i, name in enumerate(names)}
    legend = False
    for i, line in enumerate(lines[first + 1 :], first + 2):
        words = line.split()
        match = _LEGEND.fullmatch(line)
        if match:
            matrix.adapters.setdefault(match[1], match[2])
        elif words and words[0].rstrip(":") in ("Legend", "NIC"):
            legend = True
        elif words and words[0] in number and not legend:
            _row(matrix, number[words[0]], words[1:], i, tail)
    _check_pairs(matrix)
    return matrix


def _check_header(matrix: _Matrix) -> None:
    names = matrix.names
    if len(names) > MAX_DEVICES:
        _fail(matrix.line, f"the header has {len(names)} devices; a host has up to {MAX_DEVICES}")
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice:
        _fail(matrix.line, f"the header has {brief(twice)} twice; each device has one column")
    late = next((name for name in names[matrix.gpus :] if _GPU.fullmatch(name)), None)
    if late:
        _fail(matrix.line, f"the header has {late} behind an adapter; expected GPUs first")


def _row(matrix: _Matrix, a: int, words: list[str], line: int, tail: int) -> None:
    """One row: only as many cells as the header has devices, as what follows can run together."""
    name, wanted = matrix.names[a], len(matrix.names)
    if a in matrix.lines:
        _fail(line, f"a second row of {name}; the first is in line {matrix.lines[a]}")
    matrix.lines[a] = line
    if len(words) < wanted:
        _fail(
            line,
            f"the row of {name} has {len(words)} cells; the header of line {matrix.line} has "
            f"{wanted} devices",
        )
    for b, cell in enumerate(words[:wanted]):
        if a == b and cell != "X":
            _fail(line, f"{name} to itself is {quoted(cell)}; expected X")
        if a != b:
            _check_cell(matrix, a, b, cell, line)
            matrix.cells[a, b] = cell
    rest = words[wanted:]
    if len(rest) == tail and rest and re.fullmatch(r"[0-9][0-9,-]{0,200}", rest[0]):
        matrix.affinity[a] = rest[0]


def _check_cell(matrix: _Matrix, a: int, b: int, cell: str, line: int) -> None:
    pair = f"{matrix.names[a]} to {matrix.names[b]}"
    links = _nvlinks(cell)
    if links is None and cell not in NEAR:
        _fail(line, f"{pair} is {quoted(cell)}; expected NV# or one of {', '.join(NEAR)}")
    if links is not None and (max(a, b) >= matrix.gpus or not 0 < links <= MAX_LINKS):
        _fail(line, f"{pair} is {quoted(cell)}; expected NVLinks between GPUs, 1 to {MAX_LINKS}")
    back = matrix.cells.get((b, a), cell)
    if back != cell and (links is None or _nvlinks(back) is None):
        _fail(line, f"{pair} is {cell}, but {back} the other way in line {matrix.lines[b]}")


def _check_pairs(matrix: _Matrix) -> None:
    for a in range(matrix.gpus):
        for b in range(a):
            if not matrix.cell(a, b):
                _fail(
                    matrix.line,
                    f"the header has {matrix.gpus} GPUs, but no row says what joins "
                    f"{matrix.names[b]} and {matrix.names[a]}; the file is cut short",
                )


def _nvlinks(cell: str) -> int | None:
    """The number of a cell such as NV18; None for letters."""
    match = re.fullmatch(r"NV([0-9]{1,4})", cell)
    return int(match[1]) if match else None


def _join_by_nvlink(machine: Machine, matrix: _Matrix, wishes: Wishes) -> None:
    linked = Classes(matrix.gpus)
    links: dict[tuple[int, int], int] = {}
    for a in range(matrix.gpus):
        for b in range(matrix.gpus):
            number = _nvlinks(matrix.cell(a, b))
            if number is not None:
                links[a, b] = number
                linked.unite(a, b)
    if not links:
        if wishes.nvlink or wishes.nvlink_rate:
            _fail(matrix.line, "it has no NVLink between its GPUs, so --nvlink has no place here")
        return
    rate = wishes.nvlink_rate
    if rate is None and "nvlink" not in (wishes.bandwidth or {}):
        most, times = max(links.values()), f"{wishes.nvlink}x" if wishes.nvlink else ""
        _fail(
            matrix.line,
            f"it has NV{most}, but not how fast one NVLink is; say it with --nvlink {times}25GB/s "
            "(V100 to H200; 50GB/s for B200 and B300)",
        )
    one = None if rate is None else Rate(rate, rate)
    groups = [group for group in linked.groups(range(matrix.gpus)) if len(group) > 1]
    for group in groups:
        into = _into_switch(matrix, group, links, wishes.nvlink)
        if into is None:
            for a in group:
                for b in group:
                    if count := links.get((a, b)):
                        machine.cables.append(Cable("nvlink", a, b, one and one * count, count))
            continue
        name = "nvswitch" if len(groups) == 1 else f"of {matrix.names[group[0]]}"
        adds = max(into) >= ADDING
        switch = machine.add(Part("nvswitch", name, adds=adds))
        for gpu, number in zip(group, into, strict=True):
            machine.join("nvlink", gpu, switch, one and one * number, number)
        able = "copies and adds" if adds else "only forwards"
        machine.notes.append(
            f"NV{max(into)} is taken as the NVLinks of each GPU into an NVSwitch, which {able}"
        )


def _into_switch(
    matrix: _Matrix, group: list[int], links: dict[tuple[int, int], int], said: int | None
) -> list[int] | None:
    """NVLinks of each GPU into the switch; None if cells count links between pairs.

    Behind a switch each cell is what the GPU with fewer links has.
    """
    most = [max(links.get((a, b), 0) for b in group if b != a) for a in group]
    alike = all(
        links.get((a, b)) == min(most[i], most[j])
        for i, a in enumerate(group)
        for j, b in enumerate(group)
        if i != j
    )
    sums = [sum(links.get((a, b), 0) for b in group) for a in group]
    into, between = max(most), max(sums)
    if said is not None:
        if said not in (into, between) or (said == into and not alike):
            _fail(
                matrix.line,
                f"--nvlink {said} does not fit: cells of up to NV{into} are {into} links of each "
                f"GPU into a switch, or {between} to other GPUs",
            )
        return most if said == into else None
    direct = between <= MOST_DIRECT
    if direct and alike and into in INTO_SWITCH and len(group) > 2:
        _fail(
            matrix.line,
            f"NV{into} may be the links of each GPU into an NVSwitch, or those between each two; "
            f"say which with --nvlink {into} or --nvlink {between}, all that a GPU has",
        )
    if not direct and not alike:
        gpu = group[sums.index(between)]
        _fail(
            matrix.lines.get(gpu, matrix.line),
            f"{matrix.names[gpu]} has {between} NVLinks to other GPUs, more than GPUs have, and "
            "the cells are not alike, as they are behind an NVSwitch",
        )
    return None if direct else most


def _join_by_pcie(machine: Machine, matrix: _Matrix) -> None:
    """The tree of PCI switches and CPUs, as far as letters say it."""
    names, total = matrix.names, len(matrix.names)
    near = {
        (a, b): NEAR[cell]
        for a in range(total)
        for b in range(a)
        if (cell := matrix.cell(a, b)) in NEAR
    }
    lettered = {end for pair in near for end in pair}
    classes = [Classes(total) for _ in (SWITCH, PORT, NODE)]
    for (a, b), how in near.items():
        for level in range(how, AWAY):
            classes[level].unite(a, b)
    for a, where in matrix.affinity.items():
        for b in range(a):
            if (a, b) not in near and matrix.affinity.get(b) == where and {a, b} <= lettered:
                classes[NODE].unite(a, b)
    placed = _placed(matrix, near, classes[NODE], lettered)
    parts = list(range(matrix.gpus))
    parts += [machine.add(Part("nic", _adapter(matrix, name))) for name in names[matrix.gpus :]]
    cpus: list[int] = []
    for number, node in enumerate(classes[NODE].groups(placed)):
        cpu = machine.add(Part("cpu", str(number)))
        for port in classes[PORT].groups(node):
            above = _switch(machine, cpu, f"above {names[port[0]]}") if len(port) > 1 else cpu
            below = classes[SWITCH].groups(port)
            for group in below:
                on = above
                if len(group) > 1 and len(below) > 1:
                    on = _switch(machine, above, f"of {names[group[0]]}")
                for device in group:
                    machine.join("pcie", parts[device], on, None)
        for other in cpus:
            machine.join("cpu", cpu, other, None)
        cpus.append(cpu)
    _note(machine, matrix, near, classes, placed)


def _switch(machine: Machine, above: int, name: str) -> int:
    switch = machine.add(Part("pci", name))
    machine.join("pcie", switch, above, None)
    return switch


def _placed(
    matrix: _Matrix, near: dict[tuple[int, int], int], nodes: Classes, lettered: set[int]
) -> list[int]:
    """The devices whose NUMA node is told from each other one."""
    groups = nodes.groups(sorted(lettered))
    apart = {frozenset((nodes.of(a), nodes.of(b))) for (a, b), how in near.items() if how == AWAY}
    where: dict[int, set[str]] = {}
    for gpu, cpus in matrix.affinity.items():
        where.setdefault(nodes.of(gpu), set()).add(cpus)
    unclear: set[int] = set()
    for i, one in enumerate(groups):
        for other in groups[:i]:
            a, b = nodes.of(one[0]), nodes.of(other[0])
            told = where.get(a) and where.get(b) and not where[a] & where[b]
            if frozenset((a, b)) not in apart and not told:
                unclear |= {*one, *other}
    return sorted(lettered - unclear)


def _note(
    machine: Machine,
    matrix: _Matrix,
    near: dict[tuple[int, int], int],
    classes: list[Classes],
    placed: list[int],
) -> None:
    """Say what was left out, and what was taken for granted."""
    left = sorted(set(range(len(matrix.names))) - set(placed))
    if left:
        gpus = sum(device < matrix.gpus for device in left)
        what = counted({"GPU": gpus, "adapter": len(left) - gpus})
        machine.notes.append(
            f"where {what} hang on PCIe is not said, such as {matrix.names[left[0]]}"
        )
    hidden = sum(
        (a, b) not in near
        and classes[NODE].of(a) == classes[NODE].of(b)
        and classes[PORT].of(a) != classes[PORT].of(b)
        for a in placed
        for b in placed
        if b < a
    )
    if hidden:
        machine.notes.append(
            f"whether {counted({'pair': hidden})} of devices share a PCI switch is not said; taken "
            "as not"
        )
    wrong = [
        pair
        for pair, how in near.items()
        if any(classes[level].of(pair[0]) == classes[level].of(pair[1]) for level in range(how))
    ]
    if wrong:
        a, b = wrong[0]
        machine.notes.append(
            f"{matrix.names[b]} to {matrix.names[a]} is {matrix.cell(a, b)}, but others say that "
            f"they are nearer, which counts; so for {counted({'pair': len(wrong)})}"
        )


def _adapter(matrix: _Matrix, name: str) -> str:
    """An adapter by its name in the legend, if that is its alone."""
    said = matrix.adapters.get(name, name)
    alone = list(matrix.adapters.values()).count(said) < 2 and said not in matrix.names
    return said if alone else name


def _fail(line: int, sentence: str) -> NoReturn:
    raise PlacedError(sentence, line=line)


READERS.add("nvidia-smi", Reader(name="nvidia-smi", title=TITLE, recognise=recognise, read=read))
