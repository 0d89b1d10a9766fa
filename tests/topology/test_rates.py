"""What links of each generation carry."""

from __future__ import annotations

import pytest

from weft.errors import InputError
from weft.topology import rates
from weft.topology.rates import Rate, between_cpus, nvlink, pcie, pcie_of, xgmi

GB_S = 10**9


@pytest.mark.parametrize(
    ("sm", "links", "nominal", "reachable"),
    [
        (60, 4, 80, 72),
        (70, 6, 150, 120),
        (80, 12, 300, 240),
        (86, 4, 56, 48),
        (90, 18, 450, 370.8),
        (100, 18, 900, 721.8),
        (103, 18, 900, 721.8),
    ],
)
def test_nvlink(sm: int, links: int, nominal: float, reachable: float) -> None:
    assert nvlink(sm) * links == Rate(round(nominal * GB_S), round(reachable * GB_S))


def test_xgmi() -> None:
    assert [xgmi(arch).nominal // GB_S for arch in ("gfx906", "gfx90a", "gfx942")] == [46, 50, 64]
    assert xgmi("gfx942").reachable == 48 * GB_S
    assert xgmi("gfx950") == Rate(76_800_000_000, None)


@pytest.mark.parametrize(("speed", "gb_s"), [(8, 15.75), (16, 31.51), (32, 63.02), (64, 121)])
def test_pcie(speed: float, gb_s: float) -> None:
    wide = pcie(speed, 16)
    assert round(wide.nominal / GB_S, 2) == gb_s
    assert wide.reachable is not None
    assert wide.reachable < wide.nominal


@pytest.mark.parametrize(("speed", "lanes"), [(3, 16), (32, 0)])
def test_no_pcie(speed: float, lanes: int) -> None:
    with pytest.raises(InputError, match=r"PCIe has 2\.5, 5, 8, 16, 32, 64 GT/s a lane"):
        pcie(speed, lanes)


def test_infiniband() -> None:
    ports = (rates.EDR, rates.HDR, rates.NDR, rates.XDR)
    assert [8 * port.nominal // GB_S for port in ports] == [100, 200, 400, 800]
    assert rates.NDR.reachable == 48_600_000_000
    assert rates.XDR.at("reachable") is None


def test_unknown_rates() -> None:
    with pytest.raises(InputError, match="rates are nominal or reachable, not 'fast'"):
        rates.check_rates("fast")


@pytest.mark.parametrize(
    ("gb_s", "speed", "lanes"),
    [
        (15.753846, 8.0, 16),
        (31.507692, 16.0, 16),
        (3.938462, 8.0, 4),
        (4.0, 2.5, 16),
        (0.615385, 0, 0),
    ],
)
def test_pcie_by_what_it_carries(gb_s: float, speed: float, lanes: int) -> None:
    """Of those that carry as much the widest; what none carries as it is said."""
    assert pcie_of(gb_s) == (pcie(speed, lanes) if lanes else Rate(615_385_000))


@pytest.mark.parametrize(
    ("arch", "vendor", "model", "gb_s"),
    [
        ("x86_64", "GenuineIntel", 0x4F, 6),
        ("x86_64", "GenuineIntel", 0x55, 10),
        ("x86_64", "GenuineIntel", 0xCF, 40),
        ("x86_64", "AuthenticAMD", 49, 16),
        ("arm64", "", 0, 6),
        ("ppc64", "", 0, 32),
    ],
)
def test_between_cpus(arch: str, vendor: str, model: int, gb_s: int) -> None:
    assert between_cpus(arch, vendor, model) == Rate(gb_s * 10**9, gb_s * 10**9)


def test_cpus_that_nobody_knows() -> None:
    assert between_cpus("x86_64", "Zhaoxin", 1) is None
