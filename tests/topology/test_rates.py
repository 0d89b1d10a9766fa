"""What links of each generation carry."""

from __future__ import annotations

import pytest

from weft.errors import InputError
from weft.topology import rates
from weft.topology.rates import Rate, nvlink, pcie, xgmi

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
