"""Units at the edges: what is read, what is refused, what is printed."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import InputError
from weft.units import (
    MAX_BANDWIDTH,
    MAX_BYTES,
    MAX_LATENCY_PS,
    exact_bandwidth,
    exact_latency,
    format_bandwidth,
    format_size,
    format_time,
    parse_bandwidth,
    parse_flops,
    parse_latency,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        (4096, 4096),
        ("1B", 1),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("1.5MiB", 3 << 19),
        ("64MiB", 64 << 20),
        ("1GB", 10**9),
        ("1GiB", 1 << 30),
        ("1gib", 1 << 30),
        (" 2 TiB ", 2 << 40),
        ("1e6", 10**6),
        ("1e3 kB", 10**6),
        ("0.5GiB", 1 << 29),
        (".5GiB", 1 << 29),
        ("+3", 3),
        ("1024PiB", 1 << 60),
    ],
)
def test_sizes(text: str | int, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "MiB", "many", "nan", "inf", "-1", "0", "0B", "1XB", "1 2", "1MiBs", "1,5MB"),
        *("--1", "1e", "1e9999", "1025PiB", "0x10", "1_000", "½MB", "٣MB", "1\x00", True, None),
        *(-5, 0, 1 << 61, 1.5e300, float("nan"), "9" * 400, "9" * 5000, "0." + "9" * 5000),
    ],
)
def test_sizes_without_meaning(text: object) -> None:
    with pytest.raises(InputError) as caught:
        parse_size(text)
    _one_sentence(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50GB/s", 50 * 10**9),
        ("50GiB/s", 50 << 30),
        ("400Gbps", 50 * 10**9),
        ("8bit/s", 1),
        ("8 b/s", 1),
        ("1B/s", 1),
        ("12.5GB/s", 12_500_000_000),
        ("1e18B/s", 10**18),
        ("50GBps", 50 * 10**9),
    ],
)
def test_bandwidths(text: str, expected: int) -> None:
    assert parse_bandwidth(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "50", "50GB", "GB/s", "-50GB/s", "0GB/s", "0", "nanGB/s", "NaN", "infGB/s", "50G/s"),
        *("1b/s", "2e18B/s", "50 GB / s", "50gigabytes/s", "50GB/h", "1e99GB/s", "٥GB/s"),
    ],
)
def test_bandwidths_without_meaning(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_bandwidth(text)
    _one_sentence(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("0.0", 0),
        ("0us", 0),
        ("0.5us", 500_000),
        ("500ns", 500_000),
        ("1µs", 10**6),
        ("1μs", 10**6),
        ("1ps", 1),
        ("2ms", 2 * 10**9),
        ("1s", 10**12),
        ("1e6s", 10**18),
    ],
)
def test_latencies(text: str, expected: int) -> None:
    assert parse_latency(text) == expected


@pytest.mark.parametrize(
    "text", ["", "1", "us", "-1us", "nan", "nanus", "1m", "1h", "2e6s", "1US", "1 u s", "inf"]
)
def test_latencies_without_meaning(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_latency(text)
    _one_sentence(caught.value)


def _one_sentence(error: InputError) -> None:
    assert "\n" not in str(error)


@given(st.one_of(st.integers(1, MAX_BANDWIDTH), st.integers(1, 10**6).map(lambda n: n * 10**6)))
def test_exact_bandwidth_reads_back(rate: int) -> None:
    assert parse_bandwidth(exact_bandwidth(rate)) == rate


@given(st.one_of(st.integers(0, MAX_LATENCY_PS), st.integers(0, 10**6).map(lambda n: n * 1000)))
def test_exact_latency_reads_back(time: int) -> None:
    assert parse_latency(exact_latency(time)) == time


@given(st.integers(1, MAX_BYTES))
def test_what_is_printed_can_be_read(size: int) -> None:
    """Four digits are kept, and what is printed exactly reads back exactly."""
    text = format_size(size)
    assert re.fullmatch(r"[0-9.e+]+([KMGTP]i)?B", text)
    assert parse_size(text) == pytest.approx(size, rel=1e-3)


@given(st.integers(1, MAX_BANDWIDTH))
def test_printed_rates_can_be_read(rate: int) -> None:
    assert parse_bandwidth(format_bandwidth(rate)) == pytest.approx(rate, rel=1e-3)


@given(st.integers(0, MAX_LATENCY_PS))
def test_printed_times_can_be_read(time: int) -> None:
    assert parse_latency(format_time(time)) == pytest.approx(time, rel=1e-5)


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_size, parse_bandwidth, parse_latency, parse_flops):
        with contextlib.suppress(InputError):
            assert parse(text) >= 0


@pytest.mark.parametrize(
    ("text", "rate"),
    [("100TFLOP/s", 10**14), ("1.5PFLOPS", 15 * 10**14), ("312 TFLOPs", 312 * 10**12)],
)
def test_operations_per_second(text: str, rate: int) -> None:
    assert parse_flops(text) == rate


@pytest.mark.parametrize("text", ["100", "100TFLOP", "0FLOPS", "-1TFLOPS", "1e9PFLOPS", "nan"])
def test_no_operations_per_second(text: str) -> None:
    with pytest.raises(InputError, match="rate"):
        parse_flops(text)
