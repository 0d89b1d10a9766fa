"""What ``rocm-smi --showtopo`` and ``amd-smi topology --json`` print of a host's GPUs.

Both say for each two GPUs whether they are joined by XGMI or by PCIe. A weight of 15 is one XGMI
link; more is a way over others, which is no link. Hops say nothing: they are 1 across any XGMI.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from weft.documents import Document, PlacedError, load_json
from weft.quoting import brief, counted, quoted
from weft.topology.labels import Wishes
from weft.topology.machines.classes import Classes
from weft.topology.machines.machine import Cable, Machine, Part
from weft.topology.machines.reader import READERS, Reader
from weft.topology.rates import Rate

ROCM_SMI = "an output of `rocm-smi --showtopo`"
AMD_SMI = "an output of `amd-smi topology --json`"
DIRECT = 15
"""The weight of one XGMI link."""
ONE_CPU = 40
"""The weight of two PCIe links by way of one CPU, 20 each; two CPUs have more."""
MAX_GPUS = 512
MAX_RATE = 10**8
"""MB/s."""
XGMI, PCIE = "XGMI", "PCIE"
NONE = ("N/A", "NA", "UNKNOWN", "NOT_APPLICABLE", "XXXX")
_TITLE = re.compile(r"\s*={3,}+\s*([^\s=].{0,80}?)\s*={3,}+\s*")
_GPU = re.compile(r"GPU[0-9]{1,4}")
_NUMA = re.compile(r"\s*GPU ?\[?([0-9]{1,4})\]?\s*: \(Topology\) Numa Node:\s*(-?[0-9]{1,6})\s*")


@dataclass(frozen=True)
class _Pair:
    """What is said of one GPU to another."""

    kind: str = ""
    weight: int | None = None
    rate: Rate | None = None
    count: int = 1
    enabled: bool = True


@dataclass
class _Host:
    """What a file says of all GPUs of a host."""

    gpus: list[str]
    pairs: dict[tuple[int, int], _Pair] = field(default_factory=dict)
    numa: dict[int, int] = field(default_factory=dict)

    def say(self, a: int, b: int, **what: Any) -> None:
        self.pairs[a, b] = replace(self.pairs.get((a, b), _Pair()), **what)

    def pair(self, a: int, b: int) -> _Pair:
        """What is said of a to b; where nothing is, what is said of b to a."""
        one, back = self.pairs.get((a, b), _Pair()), self.pairs.get((b, a), _Pair())
        return replace(
            one if one.kind else back,
            weight=back.weight if one.weight is None else one.weight,
            rate=one.rate or back.rate,
        )


def recognise_text(document: Document) -> bool:
    head = document.text[:65536]
    return any(
        match and match[1].endswith("between two GPUs")
        for match in map(_TITLE.fullmatch, head.splitlines())
    )


def recognise_json(document: Document) -> bool:
    head = document.text[:65536]
    return bool(re.match(r"\s*\[\s*\{\s*\"gpu\"\s*:", head)) and '"link_type"' in head


def read_text(document: Document, wishes: Wishes) -> Machine:
    return _machine(document, ROCM_SMI, _from_text(document.text), wishes)


def read_json(document: Document, wishes: Wishes) -> Machine:
    return _machine(document, AMD_SMI, _from_json(load_json(document.data)), wishes)


def _machine(document: Document, title: str, host: _Host, wishes: Wishes) -> Machine:
    if wishes.nvlink is not None or wishes.nvlink_rate is not None:
        raise PlacedError(
            "GPUs of AMD have no NVLink; --bandwidth xgmi=64GB/s says how fast XGMI is between two"
        )
    machine = Machine(document.path.stem, title, [Part("gpu", name) for name in host.gpus])
    far = off = apart = unweighed = 0
    every = range(len(host.gpus))
    for a, b in ((a, b) for a in every for b in every if a != b):
        pair = host.pair(a, b)
        if not pair.kind:
            _fail(f"it does not say what joins {host.gpus[a]} and {host.gpus[b]}: it is cut short")
        apart += pair.kind in NONE
        if pair.kind != XGMI:
            continue
        far += (pair.weight or 0) > DIRECT
        off += not pair.enabled
        unweighed += pair.weight is None
        if (pair.weight or 0) <= DIRECT and pair.enabled:
            machine.cables.append(Cable("xgmi", a, b, pair.rate, pair.count))
    for number, what in (
        (far, f"more than one XGMI link from each other (a weight above {DIRECT})"),
        (off, "joined by XGMI, but without access, which is left out"),
        (apart, "joined by nothing that has a name"),
        (unweighed, "joined by XGMI of no weight, which is taken as a link of their own"),
    ):
        if number:
            machine.notes.append(f"{counted({'ordered pair': number})} of GPUs are {what}")
    _join_by_pcie(machine, host)
    return machine


def _join_by_pcie(machine: Machine, host: _Host) -> None:
    """Each GPU on the CPU of its NUMA node, as far as that is said."""
    every = range(len(host.gpus))
    if len(host.numa) == len(host.gpus):
        nodes = [host.numa[gpu] for gpu in every]
    elif all(pair.kind != PCIE for pair in host.pairs.values()):
        return
    else:
        nodes = _nodes_by_weight(host)
        machine.notes.append(
            "the CPUs that GPUs hang on are told from weights"
            if len(set(nodes)) > 1
            else "which CPU each GPU hangs on is not said; taken: one for all"
        )
    cpus = {node: machine.add(Part("cpu", str(node))) for node in dict.fromkeys(nodes)}
    for gpu, node in zip(every, nodes, strict=True):
        machine.join("pcie", gpu, cpus[node], None)
    parts = list(cpus.values())
    for i, one in enumerate(parts):
        for other in parts[:i]:
            machine.join("cpu", one, other, None)
    machine.notes.append(
        "PCI switches are not in the file; each GPU is taken to have a PCIe link of its own"
    )


def _nodes_by_weight(host: _Host) -> list[int]:
    """The CPU of each GPU: one where a weight says so; the same for all if any pair is unclear."""
    size = len(host.gpus)
    same, apart = Classes(size), set()
    for a in range(size):
        for b in range(a):
            pair = host.pair(a, b)
            if pair.kind == PCIE and pair.weight is not None:
                if pair.weight <= ONE_CPU:
                    same.unite(a, b)
                else:
                    apart.add((a, b))
    told = {frozenset((same.of(a), same.of(b))) for a, b in apart}
    groups = same.groups(range(size))
    number = {same.of(group[0]): i for i, group in enumerate(groups)}
    clear = all(
        frozenset((same.of(one[0]), same.of(other[0]))) in told
        for i, one in enumerate(groups)
        for other in groups[:i]
    )
    return [number[same.of(gpu)] if clear else 0 for gpu in range(size)]


def _from_text(text: str) -> _Host:
    """The tables of ``rocm-smi``, each under its title."""
    host: _Host | None = None
    numa: dict[str, int] = {}
    rows: dict[tuple[str, str], int] = {}
    title, columns = "", list[str]()
    for i, line in enumerate(text.splitlines(), 1):
        words = line.split()
        heading, node = _TITLE.fullmatch(line), _NUMA.fullmatch(line)
        if heading:
            title, columns = heading[1], []
        elif node:
            numa[f"GPU{node[1]}"] = int(node[2])
        elif words and not columns and all(map(_GPU.fullmatch, words)):
            if len(words) > MAX_GPUS or len(set(words)) < len(words):
                _fail(f"the columns are not up to {MAX_GPUS} different GPUs", i)
            columns = words
            host = host or _Host(words)
            if host.gpus != words:
                _fail(f"the columns of {quoted(title)} are other GPUs than those before", i)
        elif host and words and words[0] in columns:
            before = rows.setdefault((title, words[0]), i)
            if before != i:
                _fail(f"a second row of {words[0]}; the first is in line {before}", i)
            _row(host, title, words, i)
    if host is None:
        _fail("it has no table of GPUs")
    host.numa = {i: numa[gpu] for i, gpu in enumerate(host.gpus) if numa.get(gpu, -1) >= 0}
    return host


def _row(host: _Host, title: str, words: list[str], line: int) -> None:
    a, cells = host.gpus.index(words[0]), words[1:]
    if len(cells) != len(host.gpus):
        _fail(
            f"the row of {words[0]} has {len(cells)} cells; its table has {len(host.gpus)} GPUs",
            line,
        )
    for b, cell in enumerate(cells):
        if a == b:
            continue
        if title.startswith("Link Type"):
            host.say(a, b, kind=_kind(cell, (), line))
        elif title.startswith("Weight"):
            host.say(a, b, weight=_weight(cell, (), line))
        elif title.startswith("Bandwidth"):
            rate, count = _rate(cell, (), line)
            host.say(a, b, rate=rate, count=count)


def _from_json(plain: Any) -> _Host:
    """A list of GPUs, each with ``links``; or, before ROCm 6.2, with a table for each property."""
    if not isinstance(plain, list) or not 0 < len(plain) <= MAX_GPUS:
        _fail(f"expected a list of up to {MAX_GPUS} GPUs")
    numbers: dict[Any, int] = {}
    names = []
    for i, item in enumerate(plain):
        if not isinstance(item, dict) or not isinstance(item.get("gpu"), int):
            _fail("expected a GPU with its number as 'gpu'", path=(i,))
        if item["gpu"] in numbers:
            _fail(f"GPU {brief(item['gpu'])} is there twice", path=(i, "gpu"))
        numbers[item["gpu"]] = i
        bus = item.get("bdf")
        names.append(bus if isinstance(bus, str) and 0 < len(bus) < 40 else f"GPU{item['gpu']}")
    host = _Host(names if len(set(names)) == len(names) else [f"GPU{n}" for n in numbers])
    for a, item in enumerate(plain):
        for path, number, link in _links(a, item):
            if number not in numbers:
                _fail(f"a link goes to GPU {brief(number)}, which is not in the file", path=path)
            if numbers[number] == a:
                continue
            rate, count = _rate(link.get("bandwidth", "N/A"), (*path, "bandwidth"))
            host.say(
                a,
                numbers[number],
                kind=_kind(link.get("link_type"), (*path, "link_type")),
                weight=_weight(link.get("weight", "N/A"), (*path, "weight")),
                rate=rate,
                count=count,
                enabled=link.get("link_status") != "DISABLED",
            )
    return host


Path = tuple[str | int, ...]


def _links(a: int, item: dict[str, Any]) -> Iterator[tuple[Path, Any, dict[str, Any]]]:
    """The links of a GPU, in either form: where each stands, to which GPU, and what is said."""
    links = item.get("links")
    if isinstance(links, list):
        for i, link in enumerate(links):
            if not isinstance(link, dict) or not isinstance(link.get("gpu"), int):
                _fail("expected a link with the number of a GPU as 'gpu'", path=(a, "links", i))
            yield (a, "links", i), link["gpu"], link
        return
    kinds = item.get("link_type")
    if not isinstance(kinds, dict):
        _fail("the GPU has neither 'links' nor 'link_type'", path=(a,))
    tables = {
        "link_type": "link_type",
        "weight": "weight",
        "numa_bandwidth": "bandwidth",
        "link_accessibility": "link_status",
    }
    for key in kinds:
        match = re.fullmatch(r"gpu_([0-9]{1,4})", key)
        if not match:
            _fail(f"{quoted(key)} is no GPU such as gpu_0", path=(a, "link_type"))
        said = {
            new: table[key]
            for old, new in tables.items()
            if isinstance(table := item.get(old), dict) and key in table
        }
        yield (a, "link_type"), int(match[1]), said


def _kind(cell: Any, path: Path, line: int | None = None) -> str:
    word = str(cell).upper()
    if word not in (XGMI, PCIE, *NONE):
        _fail(f"the link type is {quoted(cell)}; expected XGMI, PCIE or N/A", line, path)
    return word


def _weight(cell: Any, path: Path, line: int | None = None) -> int | None:
    if str(cell).upper() in NONE:
        return None
    if not re.fullmatch(r"[0-9]{1,6}", str(cell)):
        _fail(f"the weight is {quoted(cell)}; expected a whole number such as 15", line, path)
    return int(cell)


def _rate(cell: Any, path: Path, line: int | None = None) -> tuple[Rate | None, int]:
    """From ``50000-100000``, MB/s of one link and of all between two GPUs, to a rate and links."""
    if str(cell).upper() in NONE:
        return None, 1
    match = re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", str(cell))
    if not match or not int(match[1]) <= int(match[2]) <= MAX_RATE:
        _fail(
            f"the bandwidth is {quoted(cell)}; expected MB/s from one link to all of them, such as "
            "50000-100000",
            line,
            path,
        )
    one, every = int(match[1]), int(match[2])
    if not every:
        return None, 1
    return Rate(every * 10**6), every // one if one and every % one == 0 else 1


def _fail(sentence: str, line: int | None = None, path: Path = ()) -> NoReturn:
    raise PlacedError(sentence, path, line=line)


READERS.add(
    "rocm-smi", Reader(name="rocm-smi", title=ROCM_SMI, recognise=recognise_text, read=read_text)
)
READERS.add(
    "amd-smi", Reader(name="amd-smi", title=AMD_SMI, recognise=recognise_json, read=read_json)
)
