"""What one link of each generation carries, one way: nominal, and what software reaches of it.

*Nominal* is the line rate, less the coding of the line. *Reachable* is what was published of the
same link under load: NVLink and XGMI as NCCL and RCCL count them, which follows measurements of
their kernels; PCIe as nvbandwidth measures it, where it is more than NCCL counts with; InfiniBand
as ``ib_write_bw`` does; links of TPUs as *How to Scale Your Model* counts them. Where nothing was
published it is None: no share of one generation is taken for that of the next.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.errors import InputError
from weft.quoting import quoted

NOMINAL, REACHABLE = RATES = ("nominal", "reachable")
"""Which rates the links of a network have."""


@dataclass(frozen=True)
class Rate:
    """Bytes per second of a link, one way; `reachable` is None where none was published."""

    nominal: int
    reachable: int | None = None

    def __mul__(self, links: int) -> Rate:
        """So many of these links side by side."""
        some = self.reachable
        return Rate(self.nominal * links, None if some is None else some * links)

    def over(self, ways: int) -> Rate:
        """Its part on each of so many ways that share it."""
        some = self.reachable
        return Rate(self.nominal // ways, None if some is None else some // ways)

    def at(self, rates: str) -> int | None:
        """Its bytes per second, ``nominal`` or ``reachable``; None where that is not known."""
        return self.nominal if rates == NOMINAL else self.reachable


def check_rates(rates: str) -> None:
    """Refuse what is neither nominal nor reachable."""
    if rates not in RATES:
        raise InputError(f"rates are {' or '.join(RATES)}, not {quoted(rates)}")


def _gb_s(nominal: float, reachable: float | None = None) -> Rate:
    """A rate from GB/s."""
    return Rate(round(nominal * 1e9), None if reachable is None else round(reachable * 1e9))


# NVLink, a link of a GPU: lines of NVIDIA's data sheets, counted by NCCL in src/graph/topo.h.
NVLINK1 = _gb_s(20, 18)
NVLINK2 = _gb_s(25, 20)
NVLINK3 = _gb_s(25, 20)
NVLINK3_BRIDGE = _gb_s(14, 12)  # sm86, such as A40
NVLINK4 = _gb_s(25, 20.6)
NVLINK5 = _gb_s(50, 40.1)
NVLINK6 = _gb_s(50)
_NVLINKS = {100: NVLINK5, 90: NVLINK4, 87: NVLINK3, 86: NVLINK3_BRIDGE, 80: NVLINK3, 70: NVLINK2}


def nvlink(sm: int) -> Rate:
    """One NVLink of a GPU with this compute capability, such as 90."""
    return next((rate for least, rate in _NVLINKS.items() if sm >= least), NVLINK1)


# XGMI, a link of a GPU: 16 lanes at 23, 25, 32 and 38.4 Gbit/s, counted by RCCL. What RCCL counts
# for gfx950 is what it counts for gfx942, whose links are slower: of that nothing was published.
XGMI_OLD = _gb_s(46, 24)
XGMI_GFX90A = _gb_s(50, 36)
XGMI_GFX942 = _gb_s(64, 48)
XGMI_GFX950 = _gb_s(76.8)


def xgmi(arch: str) -> Rate:
    """One XGMI link of a GPU of this architecture, such as ``gfx942``."""
    known = {"gfx90a": XGMI_GFX90A, "gfx94": XGMI_GFX942, "gfx95": XGMI_GFX950}
    return next((rate for begin, rate in known.items() if arch.startswith(begin)), XGMI_OLD)


# PCIe, a lane at so many GT/s: 8b/10b coding, 128b/130b, then flits with 242 of 256 bytes.
_PCIE = {
    2.5: Rate(250_000_000, 187_500_000),
    5.0: Rate(500_000_000, 375_000_000),
    8.0: Rate(984_615_385, 750_000_000),
    16.0: Rate(1_969_230_769, 1_640_000_000),  # nvbandwidth: 26.3 GB/s by 16 lanes
    32.0: Rate(3_938_461_538, 3_437_500_000),  # nvbandwidth: 55 GB/s by 16 lanes
    64.0: Rate(7_562_500_000, 6_000_000_000),
}


def gigatransfers_of(lane: float) -> float | None:
    """The GT/s of PCIe at which a lane carries so many B/s; None if there are none such."""
    near = (speed for speed, rate in _PCIE.items() if abs(rate.nominal - lane) < 0.01 * lane)
    return next(near, None)


def pcie(gigatransfers: float, lanes: int) -> Rate:
    """A PCIe connection of so many GT/s a lane, and lanes; raises InputError if there are none."""
    if gigatransfers not in _PCIE or lanes < 1:
        known = ", ".join(f"{speed:g}" for speed in _PCIE)
        raise InputError(f"PCIe has {known} GT/s a lane, not {gigatransfers:g} by {lanes} lanes")
    return _PCIE[gigatransfers] * lanes


def pcie_of(gigabytes: float) -> Rate:
    """The PCIe connection of so many GB/s, as hwloc says it; with as many lanes as may be."""
    exact = Rate(round(gigabytes * 1e9))
    known = (rate * lanes for lanes in (16, 8, 4, 2, 1) for rate in _PCIE.values())
    near = (rate for rate in known if abs(rate.nominal - exact.nominal) <= rate.nominal / 1000)
    return next(near, exact)


# Between the CPUs of a host, as NCCL counts it in src/graph/topo.h.
_INTEL = ((0xCF, 40), (0x8F, 22), (0x55, 10), (0, 6))


def between_cpus(arch: str, vendor: str, model: int) -> Rate | None:
    """What joins two CPUs of an architecture, maker and model; None if these are not known."""
    rates = {"AuthenticAMD": 16, "GenuineIntel": next(gb for least, gb in _INTEL if model >= least)}
    if arch in ("arm64", "aarch64"):
        rate: int | None = 6
    elif arch.startswith("ppc"):
        rate = 32
    else:
        rate = rates.get(vendor)
    return None if rate is None else _gb_s(rate, rate)


# InfiniBand, a lane: four make a port. Reachable is what ib_write_bw gives, a quarter of a port's.
INFINIBAND = {
    "SDR": _gb_s(0.25),
    "DDR": _gb_s(0.5),
    "QDR": _gb_s(1),
    "FDR10": _gb_s(1.25),
    "FDR": Rate(1_704_545_455),
    "EDR": Rate(3_125_000_000, 3_018_750_000),  # 96.6 of 100 Gbit/s
    "HDR": _gb_s(6.25),
    "NDR": _gb_s(12.5, 12.15),  # 388.8 of 400 Gbit/s
    "XDR": _gb_s(25),
}
"""Data rates by generation: SDR to QDR after 8b/10b coding, FDR after 64b/66b."""
EDR, HDR, NDR, XDR = (INFINIBAND[name] * 4 for name in ("EDR", "HDR", "NDR", "XDR"))

# Ethernet, a port; Amazon's EFA, a chip. Nothing was published of what they reach.
ROCE200, ROCE400 = _gb_s(25), _gb_s(50)
EFA200 = _gb_s(25)

# TPU, a link to a neighbour: Google's figures for a chip by its links. Reachable as in *How to
# Scale Your Model* (Austin et al., 2025), which counts with 45 GB/s where the line carries 50.
ICI_V4 = _gb_s(50, 45)
ICI_V5P = _gb_s(100, 90)
ICI_V5E = _gb_s(50, 45)
ICI_V6E = _gb_s(100, 90)
ICI_7X = _gb_s(100)

# Trainium2: links in the torus of an instance, and from one instance of an UltraServer to the next.
NEURONLINK3, NEURONLINK3_FAR = _gb_s(128), _gb_s(64)

# Ascend 910C, all ports of a package: seven planes of 56 GB/s.
UB = _gb_s(392)
