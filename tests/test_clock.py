"""What may run past the clock is refused, and the collective that is too large is named."""

from __future__ import annotations

import pytest

from weft.clock import check_clock, fits_clock
from weft.collective import Collective
from weft.errors import InputError
from weft.topology import load_topology
from weft.units import CLOCK_PS

NETWORK = load_topology("ring:4").with_links(bandwidth=10**6, latency=0)  # a byte a microsecond


def gather(size: int) -> Collective:
    return Collective.of("all-gather", range(4), size, alignment=1)


def longest(demand: Collective) -> int:
    """All transfers one after the other, as `check_clock` counts them."""
    return 2 * demand.chunk_count * 4 * demand.largest_chunk * 10**6


SMALL = Collective.of("all-reduce", range(4), 64)
LARGE = gather(CLOCK_PS // 10**6)


@pytest.mark.parametrize("demands", [[SMALL, LARGE], [LARGE, SMALL], [SMALL, SMALL, LARGE]])
def test_the_collective_that_is_too_large_is_named(demands: list[Collective]) -> None:
    assert longest(SMALL) < CLOCK_PS <= longest(LARGE)
    message = f"ring:4: all-gather of {LARGE.size} B may take longer than the clock runs"
    with pytest.raises(InputError, match=message):
        check_clock(NETWORK, demands)
    assert not fits_clock(NETWORK, demands)


def test_what_is_too_large_only_together_says_so() -> None:
    half = gather(4 * (CLOCK_PS * 2 // 3 // longest(gather(4))))
    assert longest(half) < CLOCK_PS <= 2 * longest(half)
    check_clock(NETWORK, [half])
    message = f"all-gather of {half.size} B with 2 more may take longer"
    with pytest.raises(InputError, match=message):
        check_clock(NETWORK, [SMALL, half, half])


def test_the_clock_ends_with_its_last_picosecond() -> None:
    most = 4 * ((CLOCK_PS - 1) // longest(gather(4)))
    for size, fine in ((most, True), (most + 4, False)):
        assert (longest(gather(size)) < CLOCK_PS) == fine
        assert fits_clock(NETWORK, [gather(size)]) == fine
