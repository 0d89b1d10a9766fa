"""Topology files of NCCL and RCCL: dumps of ``NCCL_TOPO_DUMP_FILE``, inputs for ``NCCL_TOPO_FILE``.

``system > cpu > pci ... > gpu > nvlink|xgmi|c2c`` and ``pci > nic > net``. Files that clouds give
to NCCL as input have no ``gpu`` or ``net``: there GPUs and adapters are known by their PCI class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from weft.documents import Document, PlacedError
from weft.documents.xml import Element, load_xml
from weft.errors import InputError
from weft.quoting import brief, counted, quoted
from weft.topology.labels import Wishes
from weft.topology.machines.machine import Cable, Machine, Part
from weft.topology.machines.reader import READERS, Reader
from weft.topology.rates import EDR, HDR, NDR, XDR, Rate, between_cpus, nvlink, pcie, xgmi

TITLE = "an NCCL topology file"
UNSEEN = "fffffff:ff:ff.0"
"""The bus id of an NVSwitch that this host cannot see."""
NVSWITCH, CPU = "0x0680", "0x068001"
GCN = {"906": "gfx906", "908": "gfx908", "910": "gfx90a", "940": "gfx940"}
"""What older dumps of RCCL call an architecture."""
MAX_COUNT = 1 << 16
MAX_CPUS = 256
_GPU_CLASSES = ("0x03", "0x12")
_MIGHT_HAVE_NVLINK = (70, 80, 90, 100, 103)
"""Architectures of which there are GPUs with NVLink and without: a file without any may lack it."""


def recognise(document: Document) -> bool:
    head = document.text[:65536]
    return bool(re.search(r"<system[\s>]", head)) and bool(re.search(r"<cpu[\s>]", head))


def read(document: Document, wishes: Wishes) -> Machine:
    system = load_xml(document.data)
    if system.tag != "system":
        system.fail(f"the document is a <{brief(system.tag)}>, not the <system> of a topology")
    reading = _Reading(document.path.stem, wishes)
    for cpu in system.named("cpu"):
        reading.cpu(cpu)
    return reading.machine_of(system)


@dataclass
class _Gpu:
    """A GPU as it stands in the file."""

    part: int
    cpu: int
    element: Element
    bus: str
    sm: int | None
    gcn: str
    order: tuple[int, ...]


@dataclass
class _Reading:
    """The machine, as far as it is read."""

    name: str
    wishes: Wishes
    machine: Machine = field(init=False)
    gpus: list[_Gpu] = field(default_factory=list)
    by_bus: dict[tuple[str, str], int] = field(default_factory=dict)
    cpus: dict[str, list[tuple[int, Element]]] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    names: set[tuple[str, str, str]] = field(default_factory=set)
    nvswitch: int | None = None
    cpu_now: int = -1
    by_class: int = 0
    unread: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.machine = Machine(self.name, TITLE)

    def cpu(self, element: Element) -> None:
        """A CPU and all below it."""
        hash_ = element.get("host_hash")
        host = self.hosts.setdefault(hash_, f"host{len(self.hosts)}")
        numa = element.get("numaid") or str(len(self.cpus.get(host, ())))
        cpu = self.cpu_now = self.part(element, "cpu", numa, host)
        self.cpus.setdefault(host, []).append((cpu, element))
        for child in element.children:
            self.below(child, cpu, host)

    def below(self, element: Element, parent: int, host: str) -> None:
        """What hangs on a CPU or a PCI switch."""
        if element.tag == "nic":
            self.nic(element, parent, host)
        elif element.tag == "pci":
            self.pci(element, parent, host)
        elif element.tag == "pcilink":
            self.unread["pcilink"] = self.unread.get("pcilink", 0) + 1

    def pci(self, element: Element, parent: int, host: str) -> None:
        bus, kind = element.get("busid").lower(), element.get("class").lower()
        if not bus:
            element.fail("<pci> has no busid")
        if not kind and not element.children:
            element.fail(f"<pci> {brief(bus)} has no class, so what it is cannot be told")
        gpu, nic = element.named("gpu"), element.named("nic")
        if gpu or (kind.startswith(_GPU_CLASSES) and not element.named("pci")):
            self.gpu(element, gpu[0] if gpu else None, parent, host)
        elif nic or kind.startswith("0x02"):
            part = self.nic(nic[0] if nic else element, parent, host, element)
            self.by_bus[host, bus] = part
        elif kind.startswith("0x0604") or element.named("pci"):
            part = self.part(element, "pci", bus, host)
            self.pcie(element, part, parent)
            for child in element.children:
                self.below(child, part, host)

    def gpu(self, pci: Element, gpu: Element | None, parent: int, host: str) -> None:
        bus = pci.get("busid").lower()
        part = self.part(pci, "gpu", bus, host)
        self.pcie(pci, part, parent)
        if gpu is None:
            self.by_class += 1
            self.gpus.append(_Gpu(part, self.cpu_now, pci, bus, None, "", (len(self.gpus),)))
            return
        sm = whole(gpu, "sm", 0, 10_000, needed=False)
        rank, dev = (whole(gpu, key, -1, 1 << 30, needed=False) for key in ("rank", "dev"))
        order = (rank if rank is not None else -1, dev if dev is not None else -1)
        gcn = gpu.get("gcn").lower()
        gcn = GCN.get(gcn, gcn)
        self.gpus.append(
            _Gpu(part, self.cpu_now, gpu, bus, None if gcn else sm, gcn, (*order, len(self.gpus)))
        )

    def nic(self, nic: Element, parent: int, host: str, pci: Element | None = None) -> int:
        """An adapter: on a PCI device, or right on a CPU."""
        nets = nic.named("net")
        bus = pci.get("busid").lower() if pci is not None else ""
        names = [net.get("name") for net in nets if net.get("name")]
        ids = tuple(dict.fromkeys(one for net in nets for one in guids(net)))
        speeds = [whole(net, "speed", 0, 10**9, needed=False) or 0 for net in nets]
        port = port_rate(sum(speeds)) if all(speeds) and speeds else None
        name = "+".join(dict.fromkeys(names)) or bus
        name = name or f"nic@{nic.line}"
        part = self.part(nic, "nic", name, host)
        self.machine.parts[part] = replace(self.machine.parts[part], ids=ids, port=port)
        if pci is not None:
            self.pcie(pci, part, parent)
        else:
            self.machine.join("pcie", part, parent, port)
        return part

    def part(self, element: Element, kind: str, name: str, host: str) -> int:
        if (kind, host, name) in self.names and kind == "gpu":
            element.fail(f"a second GPU has bus id {quoted(name)}; each has its own")
        if (kind, host, name) in self.names:  # bridges of one device have been seen to share it
            name = f"{name}@{element.line}"
        self.names.add((kind, host, name))
        number = self.machine.add(Part(kind, name, host))
        if kind in ("gpu", "pci"):
            self.by_bus[host, name] = number
        return number

    def pcie(self, element: Element, part: int, parent: int) -> None:
        """The link of a PCI device to what it hangs on, by its speed and width."""
        text = element.get("link_speed")
        width = whole(element, "link_width", 0, 64, needed=False) or 16
        speed = re.match(r"\s*([0-9]{1,3}(?:\.[0-9]{1,3})?)\s*GT/s", text)
        rate = None
        if speed or text.strip():
            try:
                rate = pcie(float(speed[1]) if speed else 0, width)
            except InputError:
                element.fail(
                    f"<pci> has link_speed={quoted(text)}; expected a rate of PCIe such as 16.0 "
                    "GT/s PCIe"
                )
        self.machine.join("pcie", part, parent, rate, width)

    def machine_of(self, system: Element) -> Machine:
        """The whole machine, once all CPUs are read."""
        if not self.gpus:
            system.fail("no GPU is in it, neither as <gpu> nor by PCI class")
        self.number()
        said = sum(len(gpu.element.named("nvlink", "xgmi")) for gpu in self.gpus)
        for gpu in self.gpus:
            for link in gpu.element.named("nvlink", "xgmi"):
                self.nvlink(gpu, link)
            for link in gpu.element.named("c2c"):
                self.c2c(gpu, link)
        if not said:
            self.nvlink_wished(system)
        elif self.wishes.nvlink is not None:
            system.fail("it says what NVLink there is; --nvlink is for files that do not")
        self.between_cpus()
        self.machine.doubts += self.doubts()
        if len(self.hosts) == 1:
            self.machine.parts = [replace(part, host="") for part in self.machine.parts]
        if self.by_class:
            self.machine.notes.append(f"{self.by_class} GPUs are known by their PCI class only")
        if self.unread:
            self.machine.notes.append(f"not read: {counted(self.unread)}")
        return self.machine

    def doubts(self) -> Iterator[str]:
        """What cannot be so on a whole machine, though NCCL takes it."""
        if len(self.hosts) > 1 and "" in self.hosts:
            yield "a cpu has no host_hash, others have one: it is taken for a host of its own"
        for host, cpus in self.cpus.items():
            for key in ("arch", "vendor", "familyid", "modelid"):
                said = {element.get(key): part for part, element in cpus}
                if len(said) > 1:
                    each = (
                        f"{self.machine.parts[part].described} says {brief(value) or 'none'}"
                        for value, part in said.items()
                    )
                    yield f"CPUs of one host differ in {key}: {', '.join(each)}"
            own = [gpu for gpu in self.gpus if self.machine.parts[gpu.part].host == host]
            devs = [gpu.order[-2] if len(gpu.order) > 1 else -1 for gpu in own]
            gaps = sorted({*range(len(devs))} - {*devs})
            if gaps and -1 not in devs and len(set(devs)) == len(devs):
                yield (
                    f"GPUs of {host} are numbered up to dev {max(devs)}, and dev "
                    f"{brief(', '.join(map(str, gaps)))} is not there"
                )

    def number(self) -> None:
        """GPUs by rank, else by device, else as in the file: NPU 0, 1, 2."""
        ranks = [gpu.order[0] for gpu in self.gpus if len(gpu.order) > 1]
        ranked = len(ranks) == len(self.gpus) and -1 not in ranks
        if ranked and len(set(ranks)) < len(ranks):
            twice = next(gpu for gpu in self.gpus if ranks.count(gpu.order[0]) > 1)
            twice.element.fail(f"rank {twice.order[0]} is that of two GPUs")
        key = (lambda gpu: gpu.order) if ranked else (lambda gpu: gpu.order[1:])
        order = [gpu.part for gpu in sorted(self.gpus, key=key)]
        slots = sorted(order)
        moved = dict(zip(order, slots, strict=True))
        parts = list(self.machine.parts)
        for old, new in moved.items():
            self.machine.parts[new] = parts[old]
        self.machine.cables = [
            replace(c, src=moved.get(c.src, c.src), dst=moved.get(c.dst, c.dst))
            for c in self.machine.cables
        ]
        self.by_bus = {bus: moved.get(part, part) for bus, part in self.by_bus.items()}
        for gpu in self.gpus:
            gpu.part = moved[gpu.part]

    def nvlink(self, gpu: _Gpu, link: Element) -> None:
        """One line of links: to a GPU, to the NVSwitch, or to a CPU."""
        target = link.get("target").lower()
        if not target:
            link.fail(f"<{link.tag}> has no target")
        count = whole(link, "count", 1, MAX_COUNT)
        assert count is not None
        rate, kind = self.rate(gpu, link.tag) * count, link.tag
        host = self.machine.parts[gpu.part].host
        other, tclass = self.by_bus.get((host, target)), link.get("tclass").lower()
        if tclass.startswith(CPU):
            self.machine.join(kind, gpu.part, gpu.cpu, rate, count)
        elif tclass.startswith(NVSWITCH):
            self.machine.join(kind, gpu.part, self.switch(gpu), rate, count)
        elif other == gpu.part:
            link.fail(
                f"GPU {gpu.bus} has a link to itself; expected the bus id of another GPU or of an "
                "NVSwitch"
            )
        elif other is None or self.machine.parts[other].kind != "gpu":
            link.fail(f"target {quoted(target)} is no GPU of this file, and tclass no NVSwitch")
        else:
            self.machine.cables.append(Cable(kind, gpu.part, other, rate, count))

    def rate(self, gpu: _Gpu, kind: str = "nvlink") -> Rate:
        """The rate of one link of a GPU."""
        if kind == "xgmi" or gpu.gcn:
            return xgmi(gpu.gcn)
        if self.wishes.nvlink_rate is not None:
            return exactly(self.wishes.nvlink_rate)
        if gpu.sm is None:
            gpu.element.fail(
                f"GPU {gpu.bus} does not say its sm, which tells how fast its NVLinks are; say "
                f"that of one with --nvlink {self.wishes.nvlink or ''}x25GB/s"
            )
        return nvlink(gpu.sm)

    def switch(self, gpu: _Gpu) -> int:
        """The NVSwitch: one for all, as they spread every transfer over all of them."""
        if self.nvswitch is None:
            adds = gpu.sm is not None and gpu.sm >= 90
            host = self.machine.parts[gpu.part].host if len(self.hosts) == 1 else ""
            self.nvswitch = self.machine.add(Part("nvswitch", "nvswitch", host, adds=adds))
        return self.nvswitch

    def c2c(self, gpu: _Gpu, link: Element) -> None:
        """The link of a GPU to the CPU beside it."""
        megabytes, count = whole(link, "bw", 1, 10**9), whole(link, "count", 1, MAX_COUNT)
        assert megabytes is not None
        assert count is not None
        self.machine.join("c2c", gpu.part, gpu.cpu, exactly(megabytes * 10**6) * count, count)

    def nvlink_wished(self, system: Element) -> None:
        """What NVLink the user says where the file has none."""
        wishes = self.wishes
        sms = {gpu.sm for gpu in self.gpus}
        if wishes.nvlink is None:
            unclear = sms & set(_MIGHT_HAVE_NVLINK)
            if self.by_class or unclear:
                system.fail(
                    "the file has no NVLink, and GPUs "
                    + ("that may have some" if self.by_class else f"of sm {max(unclear)}")  # type: ignore[type-var]
                    + "; say how many of each GPU lead into the NVSwitch with --nvlink 18"
                    + ("x25GB/s" if None in sms else "")
                    + ", or --nvlink 0 if there are none"
                )
            return
        for gpu in self.gpus if wishes.nvlink else ():
            rate = self.rate(gpu) * wishes.nvlink
            self.machine.join("nvlink", gpu.part, self.switch(gpu), rate, wishes.nvlink)

    def between_cpus(self) -> None:
        """What joins the CPUs of a host: not in the file, but known by maker and model."""
        for cpus in self.cpus.values():
            if len(cpus) > MAX_CPUS:
                cpus[-1][1].fail(f"a host has {len(cpus)} CPUs; expected up to {MAX_CPUS}")
            for i, (a, element) in enumerate(cpus):
                for b, _ in cpus[:i]:
                    self.machine.join("cpu", a, b, socket_rate(element))


def socket_rate(cpu: Element) -> Rate | None:
    """The rate between two CPUs as NCCL counts it; None if the file does not say what they are."""
    vendor, model = cpu.get("vendor"), 0
    if vendor == "GenuineIntel":
        model = whole(cpu, "modelid", 0, 1 << 16, needed=False) or 0
    return between_cpus(cpu.get("arch").lower(), vendor, model)


def exactly(rate: int) -> Rate:
    """A rate that is reached as it is said."""
    return Rate(rate, rate)


def port_rate(megabits: int) -> Rate:
    """The rate of a port from Mbit/s; with what InfiniBand reaches of it where that is known."""
    nominal = megabits * 125_000
    known = (rate for rate in (EDR, HDR, NDR, XDR) if rate.nominal == nominal)
    return next(known, Rate(nominal))


def guids(net: Element) -> tuple[str, ...]:
    """A port's GUID in small letters without ``0x``, as it stands there and as others write it.

    NCCL prints the bytes as they lie in memory, from the last to the first.
    """
    text = net.get("guid").lower().removeprefix("0x")
    if not re.fullmatch(r"[0-9a-f]{6,16}", text):
        return ()
    return text, bytes.fromhex(text.zfill(16))[::-1].hex()


def whole(element: Element, key: str, least: int, most: int, *, needed: bool = True) -> int | None:
    """An attribute that is a whole number; None if it is not there and need not be."""
    text = element.get(key).strip()
    if not text:
        if needed:
            element.fail(f"<{element.tag}> has no {key}")
        return None
    if not re.fullmatch(r"-?[0-9]{1,12}", text) or not least <= int(text) <= most:
        raise PlacedError(
            f"<{element.tag}> has {key}={quoted(text)}; expected a whole number from {least} to "
            f"{most}",
            line=element.line,
        )
    return int(text)


READERS.add("nccl", Reader(name="nccl", title=TITLE, recognise=recognise, read=read, rank=10))
