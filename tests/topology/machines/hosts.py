"""Hosts and fabrics made up for tests, as the tools of a cluster would print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.topology import Topology
from weft.topology.machines import Machine

SWITCH = '"fffffff:ff:ff.0" count="{}" tclass="0x068000"'


def dgx(
    *,
    gpus: int = 4,
    nics: Sequence[str] = ("mlx5_0", "mlx5_1"),
    guids: Mapping[str, str] | None = None,
    links: int = 18,
    speed: int = 400_000,
) -> str:
    """What NCCL writes of a host with an NVSwitch: PCI switches with GPUs and an adapter each."""
    each, lines = gpus // len(nics), ['<system version="1">']
    half = (len(nics) + 1) // 2
    for cpu in range(2):
        lines.append(
            f'<cpu numaid="{cpu}" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">'
        )
        for i, nic in list(enumerate(nics))[cpu * half : (cpu + 1) * half]:
            lines.append(_pci(f"0000:{i + 1}0:00.0", "0x060400"))
            for dev in range(i * each, (i + 1) * each):
                lines += [
                    _pci(f"0000:{i + 1}{dev + 1:x}:00.0", "0x030200"),
                    f'<gpu dev="{dev}" sm="90" rank="{dev}" gdr="1">',
                    f"<nvlink target={SWITCH.format(links)}/>",
                    "</gpu>",
                    "</pci>",
                ]
            guid = f' guid="0x{guids[nic]}"' if guids and nic in guids else ""
            lines += [
                _pci(f"0000:{i + 1}f:00.0", "0x020700"),
                f'<nic><net name="{nic}" dev="{i}" speed="{speed}" port="1"{guid}/></nic>',
                "</pci>",
                "</pci>",
            ]
        lines.append("</cpu>")
    return "\n".join([*lines, "</system>"])


def trays(hosts: int = 2, gpus: int = 4) -> str:
    """What NCCL writes of hosts in one NVLink domain, whose GPUs have links to their CPU too."""
    lines, rank = ['<system version="1">'], 0
    for host in range(hosts):
        for cpu in range(2):
            lines.append(f'<cpu host_hash="0x{host + 1}" numaid="{cpu}" arch="arm64">')
            for dev in range(cpu * gpus // 2, (cpu + 1) * gpus // 2):
                lines += [
                    _pci(f"000{dev}:01:00.0", "0x060400"),
                    _pci(f"000{dev}:06:00.0", "0x030200"),
                    f'<gpu dev="{dev}" sm="103" rank="{rank}" gdr="1">',
                    f"<nvlink target={SWITCH.format(18)}/>",
                    '<c2c bw="44712" count="5"/>',
                    "</gpu>",
                    "</pci>",
                    "</pci>",
                ]
                rank += 1
            lines.append("</cpu>")
    return "\n".join([*lines, "</system>"])


def hive(gpus: int = 4) -> str:
    """What RCCL writes of a full mesh of XGMI."""
    buses = [f"0000:{dev + 1}3:00.0" for dev in range(gpus)]
    lines = ['<system version="2">']
    for cpu in range(2):
        lines.append(
            f'<cpu numaid="{cpu}" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">'
        )
        for dev in range(cpu * gpus // 2, (cpu + 1) * gpus // 2):
            lines += [
                _pci(buses[dev], "0x038000"),
                f'<gpu dev="{dev}" sm="80" gcn="gfx942" arch="37888" rank="{dev}" gdr="1">',
                *(
                    f'<xgmi target="{bus}" count="1" tclass="0x038000"/>'
                    for bus in buses
                    if bus != buses[dev]
                ),
                "</gpu>",
                "</pci>",
            ]
        lines.append("</cpu>")
    return "\n".join([*lines, "</system>"])


def _pci(bus: str, kind: str) -> str:
    return f'<pci busid="{bus}" class="{kind}" link_speed="32.0 GT/s PCIe" link_width="16">'


def reversed_bytes(guid: str) -> str:
    """A GUID as NCCL prints it."""
    return bytes.fromhex(guid)[::-1].hex()


@dataclass
class Fabric:
    """A fabric of leaves and spines, to be printed as ibnetdiscover does.

    Attributes
    ----------
    plugs
        By host and adapter, the leaf it hangs on.
    ups
        By leaf and spine, how many cables join them.
    rates
        By host and adapter: what its link is, where not 4xNDR.
    called
        By host and adapter: what it calls itself, where not by its name.
    """

    plugs: dict[tuple[str, str], str]
    ups: dict[tuple[str, str], int] = field(default_factory=dict)
    rates: dict[tuple[str, str], str] = field(default_factory=dict)
    called: dict[tuple[str, str], str] = field(default_factory=dict)

    def guid(self, host: str, adapter: str) -> str:
        return f"0c42a1030000{sorted(self.plugs).index((host, adapter)):04x}"

    def switch(self, name: str) -> str:
        names = sorted({*self.plugs.values(), *(name for pair in self.ups for name in pair)})
        return f"0c42a10300ff{names.index(name):04x}"

    def blocks(self) -> list[str]:
        """Each switch and adapter with its ports."""
        ports: dict[str, list[tuple[str, str, str]]] = {}
        lines: dict[str, str] = {}

        def link(a: tuple[str, str], b: tuple[str, str], rate: str = "4xNDR") -> None:
            (guid, called), (peer, there) = a, b
            here, far = (len(ports.setdefault(one, [])) + 1 for one in (guid, peer))
            ports[guid].append((f'[{here}] "{peer}"[{far}]', there, rate))
            ports[peer].append((f'[{far}] "{guid}"[{here}]', called, rate))

        for (host, adapter), leaf in self.plugs.items():
            name = self.called.get((host, adapter), f"{host} {adapter}")
            guid = f"H-{self.guid(host, adapter)}"
            lines[guid] = f'Ca 1 "{guid}" # "{name}"'
            rate = self.rates.get((host, adapter), "4xNDR")
            link((guid, name), (f"S-{self.switch(leaf)}", leaf), rate)
        for (leaf, spine), count in self.ups.items():
            for _ in range(count):
                link((f"S-{self.switch(leaf)}", leaf), (f"S-{self.switch(spine)}", spine))
        for name in {*self.plugs.values(), *(name for pair in self.ups for name in pair)}:
            guid = f"S-{self.switch(name)}"
            lines[guid] = f'Switch 65 "{guid}" # "{name}"'
        return [
            "\n".join(
                [line, *(f'{at} # "{there}" lid 1 {rate}' for at, there, rate in ports[guid])]
            )
            for guid, line in sorted(lines.items())
        ]

    @property
    def text(self) -> str:
        return "# Topology file: generated on Mon Nov  2 09:00:00 2026\n\n" + "\n\n".join(
            self.blocks()
        )


def railed(
    hosts: Sequence[str], nics: Sequence[str] = ("mlx5_0", "mlx5_1"), spines: int = 2, ups: int = 1
) -> Fabric:
    """A leaf for each adapter of a host, and spines above them."""
    plugs = {(host, nic): f"leaf{i}" for host in hosts for i, nic in enumerate(nics)}
    above = {(f"leaf{i}", f"spine{k}"): ups for i in range(len(nics)) for k in range(spines)}
    return Fabric(plugs, above)


def wiring(topology: Topology) -> dict[tuple[str, str], tuple[int, int]]:
    """Rate and α from one node to another, by what they are called: without their numbers."""
    labels = topology.labels
    assert labels is not None
    rows = zip(*(column.tolist() for column in topology.columns), strict=True)
    found = {(labels.described(a), labels.described(b)): (rate, ps) for a, b, rate, ps in rows}
    assert len(found) == topology.links
    return found


def cables(machine: Machine) -> dict[tuple[str, str], list[int | None]]:
    """The rates of all cables from one part to another, by what they are called."""
    found: dict[tuple[str, str], list[int | None]] = {}
    for cable in machine.cables:
        ends = machine.parts[cable.src].described, machine.parts[cable.dst].described
        found.setdefault(ends, []).append(cable.rate and cable.rate.nominal)
    return found
