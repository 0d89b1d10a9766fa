"""XML files of hwloc: what ``lstopo host.xml`` writes, with matrices of NVLink's or XGMI's rates.

Objects lie in each other as the hardware does: packages and NUMA nodes, host bridges, PCI bridges,
devices, and what the system calls these. Of PCI only what leads to a GPU or an adapter is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from weft.documents import Document
from weft.documents.xml import Element, load_xml
from weft.quoting import brief, counted, quoted
from weft.topology.labels import Wishes
from weft.topology.machines.classes import Classes
from weft.topology.machines.machine import Cable, Machine, Part
from weft.topology.machines.reader import READERS, Reader
from weft.topology.rates import Rate, between_cpus, pcie_of

TITLE = "an XML file of hwloc"
MATRICES = {"NVLinkBandwidth": "nvlink", "XGMIBandwidth": "xgmi"}
HOPS = "XGMIHops"
MAX_OBJECTS = 1 << 10
"""Objects in a matrix."""
MAX_GPUS, MAX_ADAPTERS, MAX_CPUS = 256, 4096, 64
MAX_RATE = 10**8
"""MB/s."""
ATREST = 4.0
"""GB/s of a PCIe link of 16 lanes at 2.5 GT/s, to which GPUs fall back when they have no work."""
_GPU_CLASSES = ("0300", "0302", "0380", "12")
_GPU_VENDORS = ("10de", "1002", "1da3")
_NUMBERED = re.compile(r"(?:nvml|rsmi)([0-9]{1,4})")
_ADDING = re.compile(r"\b(?:H[128]00|H20|GH200|B[123]00|GB[23]00)\b")
"""Models whose NVSwitches copy and add."""


def recognise(document: Document) -> bool:
    head = document.text[:65536]
    return bool(re.search(r"<topology[\s>]", head)) and bool(
        re.search(r"<object type=[\"'](?:Machine|System)[\"']", head)
    )


def read(document: Document, wishes: Wishes) -> Machine:
    root = load_xml(document.data, doctype=True)
    if root.tag != "topology":
        root.fail(f"the document is a <{brief(root.tag)}>, not the <topology> of hwloc")
    reading = _Reading(Machine(document.path.stem, TITLE), wishes)
    reading.devices(root)
    for element in root.named("object"):
        reading.walk(element, element, None, None)
    reading.between(root)
    reading.links(root)
    return reading.machine


@dataclass
class _Reading:
    """The machine, as far as it is read; elements are known by ``id()``, as each is one."""

    machine: Machine
    wishes: Wishes
    parts: dict[int, int] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)
    cpus: list[int] = field(default_factory=list)
    objects: dict[str, Element] = field(default_factory=dict)
    above: dict[int, Element] = field(default_factory=dict)
    names: set[tuple[str, str]] = field(default_factory=set)

    def devices(self, root: Element) -> None:
        """GPUs, which come first among the parts; and what lies above them and adapters."""
        gpus: list[tuple[int, Element]] = []
        adapters = 0
        for element in root.all("object"):
            kind, number = element.get("type"), element.get("gp_index")
            if number:
                self.objects[f"{kind}:{number}"] = element
            for child in element.children:
                self.above[id(child)] = element
            if kind == "PCIDev" and _is_gpu(element):
                gpus.append((len(gpus), element))
                self.keep(element)
            elif kind == "PCIDev" and _is_adapter(element):
                self.keep(element)
                adapters += 1
        if not gpus:
            root.fail("no GPU is in it, as a PCI device; lstopo leaves I/O out with --no-io")
        if len(gpus) > MAX_GPUS or adapters > MAX_ADAPTERS:
            root.fail(
                f"it has {counted({'GPU': len(gpus), 'adapter': adapters})}; a host has up to "
                f"{MAX_GPUS} and {MAX_ADAPTERS}"
            )
        order = [_number(element) for _, element in gpus]
        if None not in order and len(set(order)) == len(order):
            gpus = [
                (number or 0, element) for number, (_, element) in zip(order, gpus, strict=True)
            ]
        for _, element in sorted(gpus, key=lambda gpu: gpu[0]):
            self.add(element, "gpu", element.get("pci_busid").lower() or f"gpu@{element.line}")

    def keep(self, element: Element) -> None:
        """Note it and all that it lies in."""
        while id(element) not in self.kept:
            self.kept.add(id(element))
            if id(element) not in self.above:
                return
            element = self.above[id(element)]

    def add(self, element: Element, kind: str, name: str, ids: tuple[str, ...] = ()) -> int:
        name = f"{name}@{element.line}" if (kind, name) in self.names else name
        self.names.add((kind, name))
        self.parts[id(element)] = self.machine.add(Part(kind, name, ids=ids))
        return self.parts[id(element)]

    def walk(self, element: Element, node: Element, on: int | None, speed: float | None) -> None:
        """An object that leads to a GPU or an adapter: on which part it hangs, and how fast.

        `node` is the NUMA node or package around it. Ports of a switch, which have a bridge each,
        are no parts: a link to what hangs on one is as fast as both ends of it say.
        """
        kind = element.get("type")
        if id(element) not in self.kept:
            return
        if kind == "PCIDev":
            self.device(element, node, on, speed)
            return
        if kind == "Bridge":
            own = _speed(element)
            below = [child for child in element.children if id(child) in self.kept]
            if element.get("bridge_type").startswith("0-"):
                on, speed = self.cpu(node), None
            elif len(below) > 1:
                on, speed = self.switch(element, node, on, _least(speed, own)), None
            else:
                speed = _least(speed, own)
        elif kind in ("Package", "NUMANode") or any(
            child.get("type") == "NUMANode" for child in element.named("object")
        ):
            node = element
        for child in element.named("object"):
            self.walk(child, node, on, speed)

    def device(self, element: Element, node: Element, on: int | None, speed: float | None) -> None:
        part = self.parts.get(id(element))
        own = _speed(element)
        if part is None:
            part = self.adapter(element)
        elif own is not None and own <= ATREST:
            name = self.machine.parts[part].name
            self.machine.notes.append(
                f"PCIe of gpu {name} runs at {own:g} GB/s, as that of GPUs at rest does; run "
                "lstopo under load, or say it with --bandwidth pcie=64GB/s"
            )
        self.join(part, self.cpu(node) if on is None else on, _least(speed, own))

    def adapter(self, element: Element) -> int:
        """A network adapter by what the system calls it, with its GUIDs."""
        system = element.named("object")
        verbs = [one for one in system if one.get("osdev_type") in ("3", "32", "OpenFabrics")]
        names = [one.get("name") for one in verbs or system if one.get("name")]
        said = [
            info.get("value").split(":")
            for one in verbs
            for info in one.named("info")
            if info.get("name") == "NodeGUID" or re.fullmatch(r"Port\d+GID0", info.get("name"))
        ]
        guids = ["".join(words[-4:]).lower() for words in said]
        ids = dict.fromkeys(guid for guid in guids if re.fullmatch("[0-9a-f]{16}", guid))
        bus = element.get("pci_busid").lower()
        return self.add(element, "nic", (names or [bus or "nic"])[0], tuple(ids))

    def switch(self, element: Element, node: Element, on: int | None, speed: float | None) -> int:
        part = self.add(element, "pci", element.get("pci_busid").lower() or "bridge")
        self.join(part, self.cpu(node) if on is None else on, speed)
        return part

    def cpu(self, node: Element) -> int:
        """The CPU of a NUMA node or a package."""
        if id(node) not in self.parts:
            numa = [node, *node.named("object")]
            names = [one.get("os_index") for one in numa if one.get("type") == "NUMANode"]
            name = "+".join(name for name in names if name)
            self.cpus.append(self.add(node, "cpu", name or node.get("type").lower()))
        return self.parts[id(node)]

    def join(self, part: int, on: int, speed: float | None) -> None:
        self.machine.join("pcie", part, on, None if speed is None else pcie_of(speed))

    def between(self, root: Element) -> None:
        """What joins CPUs: not in the file, but known by maker and model."""
        said = {info.get("name"): info.get("value") for info in root.all("info")}
        model = said.get("CPUModelNumber", "")
        rate = between_cpus(
            said.get("Architecture", "x86_64"),
            said.get("CPUVendor", ""),
            int(model) if re.fullmatch(r"[0-9]{1,6}", model) else 0,
        )
        if len(self.cpus) > MAX_CPUS:
            root.fail(f"devices hang on {len(self.cpus)} CPUs; a host has up to {MAX_CPUS}")
        for i, one in enumerate(self.cpus):
            for other in self.cpus[:i]:
                self.machine.join("cpu", one, other, rate)

    def links(self, root: Element) -> None:
        """NVLink and XGMI, by the matrices or by what the user says."""
        hops = {}
        for matrix in root.named("distances2", "distances2hetero"):
            if matrix.get("name") == HOPS:
                hops = dict(self.cells(matrix))
        found = 0
        for matrix in root.named("distances2", "distances2hetero"):
            kind = MATRICES.get(matrix.get("name"))
            if kind:
                found += kind == "nvlink"
                self.matrix(matrix, kind, hops if kind == "xgmi" else {})
        if not found:
            self.nvlink_wished(root)
        elif self.wishes.nvlink is not None or self.wishes.nvlink_rate is not None:
            root.fail("it says what NVLink there is; --nvlink is for files that do not")

    def cells(self, matrix: Element) -> Iterator[tuple[tuple[int, int], int]]:
        """The numbers of a matrix that are not 0, by the elements of both ends."""
        names = _words(matrix, "indexes")
        numbers = _words(matrix, "u64values")
        if not 0 < len(names) <= MAX_OBJECTS:
            matrix.fail(f"the matrix has {len(names)} objects; expected 1 to {MAX_OBJECTS}")
        if len(numbers) != len(names) ** 2:
            matrix.fail(
                f"the matrix of {len(names)} objects has {len(numbers)} values; expected "
                f"{len(names) ** 2}"
            )
        kind = matrix.get("type")
        ends = []
        for name in names:
            element = self.objects.get(f"{kind}:{name}" if kind else name)
            if element is None:
                matrix.fail(f"the matrix has {quoted(name)}, which is no object of this file")
            ends.append(id(element))
        for i, number in enumerate(numbers):
            if not re.fullmatch(r"[0-9]{1,12}", number):
                matrix.fail(f"the matrix has {quoted(number)}; expected whole numbers")
            a, b = divmod(i, len(names))
            if a != b and int(number):
                yield (ends[a], ends[b]), int(number)

    def matrix(self, matrix: Element, kind: str, hops: dict[tuple[int, int], int]) -> None:
        """Links between GPUs, and of GPUs into NVSwitches, from MB/s."""
        by_id = {id(element): element for element in self.objects.values()}
        rates: dict[tuple[int, int], int] = {}
        for (a, b), rate in self.cells(matrix):
            if rate > MAX_RATE:
                matrix.fail(f"the matrix has {rate} MB/s; expected up to {MAX_RATE}")
            one, other = self.end(by_id[a]), self.end(by_id[b])
            if one is None or other is None or one == other or hops.get((a, b), 1) > 1:
                continue
            rates[one, other] = max(rate, rates.get((one, other), 0))
        unit = min(rates.values(), default=1)
        total: dict[tuple[int, int], int] = {}
        merged = self.switches(rates)
        for (a, b), rate in rates.items():
            pair = merged.get(a, a), merged.get(b, b)
            if pair[0] != pair[1]:
                total[pair] = total.get(pair, 0) + rate
        for (a, b), rate in total.items():
            count = rate // unit if rate % unit == 0 else 1
            self.machine.cables.append(Cable(kind, a, b, Rate(rate * 10**6), count))

    def end(self, element: Element) -> int | None:
        """The part that an object of a matrix is: a GPU, an NVSwitch, a CPU."""
        while id(element) not in self.parts:
            if element.get("type") == "PCIDev":
                return self.add(element, "nvswitch", element.get("pci_busid").lower())
            if id(element) not in self.above:
                return None
            element = self.above[id(element)]
        return self.parts[id(element)]

    def switches(self, rates: dict[tuple[int, int], int]) -> dict[int, int]:
        """NVSwitches that have a GPU in common are one: every transfer is spread over them."""
        parts = self.machine.parts
        alike = Classes(len(parts))
        first: dict[int, int] = {}
        for a, b in rates:
            if parts[a].kind == "gpu" and parts[b].kind == "nvswitch":
                alike.unite(first.setdefault(a, b), b)
        switches = [i for i, part in enumerate(parts) if part.kind == "nvswitch"]
        groups = alike.groups(switches)
        adds = any(
            info.get("name") == "GPUModel" and _ADDING.search(info.get("value"))
            for element in self.objects.values()
            for info in element.named("info")
        )
        for i, group in enumerate(groups):
            name = "nvswitch" if len(groups) == 1 else parts[group[0]].name
            parts[group[0]] = Part("nvswitch", name, adds=adds)
            for other in groups[:i]:
                self.machine.join("nvswitch", group[0], other[0], None)
        if switches:
            able = "copy and add" if adds else "only forward"
            fewer = f", so {len(switches)} are {len(groups)}" if len(groups) < len(switches) else ""
            self.machine.notes.append(
                f"NVSwitches that share GPUs are taken as one{fewer}; they are taken to {able}"
            )
        return {switch: group[0] for group in groups for switch in group}

    def nvlink_wished(self, root: Element) -> None:
        """What NVLink the user says where the file has no matrix."""
        every = set(self.machine.of_kind("gpu"))
        gpus = [
            element
            for element in root.all("object")
            if self.parts.get(id(element)) in every and _vendor(element) == "10de"
        ]
        wishes = self.wishes
        seen = any(
            one.get("name").startswith("nvml") for gpu in gpus for one in gpu.named("object")
        )
        if wishes.nvlink is None and len(gpus) > 1 and not seen:
            root.fail(
                "it has no matrix of NVLinkBandwidth, as hwloc was built without NVML; say how "
                "many NVLinks of each GPU lead into the NVSwitch with --nvlink 18x25GB/s, or "
                "--nvlink 0 if there are none"
            )
        if wishes.nvlink and wishes.nvlink_rate is None:
            root.fail(f"how fast one NVLink is is not said; say --nvlink {wishes.nvlink}x25GB/s")
        if wishes.nvlink and wishes.nvlink_rate is not None and gpus:
            switch = self.machine.add(Part("nvswitch", "nvswitch"))
            rate = Rate(wishes.nvlink_rate, wishes.nvlink_rate) * wishes.nvlink
            for gpu in gpus:
                self.machine.join("nvlink", self.parts[id(gpu)], switch, rate, wishes.nvlink)


def _words(matrix: Element, tag: str) -> list[str]:
    """All that stands in the elements of a tag, which a matrix has many of."""
    return [word for element in matrix.named(tag) for word in element.text.split()]


def _vendor(element: Element) -> str:
    """The maker in ``0302 [10de:1db8] ...``."""
    match = re.match(r"\s*[0-9a-fA-F]{4} \[([0-9a-fA-F]{4}):", element.get("pci_type"))
    return match[1].lower() if match else ""


def _is_gpu(element: Element) -> bool:
    """A GPU that computes, not the graphics of a server's console."""
    return element.get("pci_type").startswith(_GPU_CLASSES) and _vendor(element) in _GPU_VENDORS


def _is_adapter(element: Element) -> bool:
    """A network adapter that the system has a name for."""
    named = any(one.get("type") == "OSDev" for one in element.named("object"))
    return element.get("pci_type").startswith("02") and named


def _number(element: Element) -> int | None:
    """The number of a GPU in ``nvidia-smi`` or ``rocm-smi``, where the file has it."""
    for one in element.named("object"):
        match = _NUMBERED.fullmatch(one.get("name"))
        if match:
            return int(match[1])
    return None


def _speed(element: Element) -> float | None:
    """GB/s of a PCI link; None if it is not said, or 0."""
    text = element.get("pci_link_speed").strip()
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,4}(?:\.[0-9]{1,9})?", text):
        element.fail(f"pci_link_speed is {quoted(text)}; expected GB/s such as 15.753846")
    return float(text) or None


def _least(a: float | None, b: float | None) -> float | None:
    return min((speed for speed in (a, b) if speed is not None), default=None)


READERS.add("hwloc", Reader(name="hwloc", title=TITLE, recognise=recognise, read=read))
