"""Clusters of hundreds to a million GPUs: what is planned, how near to its bound, at what cost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from papers.report import Extent, Row, Setup, one_table
from papers.scale import run
from weft import synthesize
from weft.topology import Topology, load_topology
from weft.units import format_size, parse_size

_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce")

# Network, NPUs.
_HUNDREDS = (("h100:64", 512),)
_THOUSANDS = (
    *(("h100:512", 4096), ("rails:8x512x16", 4096), ("clos:32x16x8", 4096)),
    *(("h100:8192", 65536), ("fat-tree:64", 65536)),
)
_MILLION = (("clos:64x128x128,oversubscription=2", 1 << 20),)
_MORE = (
    ("leaf-spine:32x32x16", "all-reduce", "1GiB"),
    ("h100:16", "send-recv", "64MiB", "--parallel", "tp=8,dp=8,pp=2", "--along", "pp"),
    ("h100:1", "all-reduce", "1GiB"),
)


def clusters(extent: Extent) -> Setup:
    """Whole networks, all in: each row is `weft synth` and `weft verify` of what it stored."""
    title = (
        "Clusters: microseconds; CPU seconds and peak of `weft synth` with its store, of `verify`"
    )
    cases = [case for network in _HUNDREDS for case in _collectives(*network, "256MiB")]
    if extent >= Extent.USUAL:
        cases += [case for network in _THOUSANDS for case in _collectives(*network, "1GiB")]
        cases += _MORE
    if extent >= Extent.LONG:
        cases += [case for network in _MILLION for case in _collectives(*network, "1GiB")]
    columns = ("network", "collective", "size", "us", "of bound", "method", "CPU s", "peak MiB")
    more = ("verify CPU s", "verify peak MiB", "verified")
    return one_table("clusters", title, (*columns, *more), cases, _cluster_row)


def _collectives(network: str, npus: int, size: str) -> Iterator[tuple[str, ...]]:
    yield from ((network, kind, size) for kind in _KINDS)
    pair = parse_size(size) if npus < 1 << 12 else npus << 12
    yield network, "all-to-all", format_size(pair)


def _cluster_row(case: tuple[str, ...]) -> Row:
    network, kind, size, *more = case
    with tempfile.TemporaryDirectory(dir=".") as folder:
        store = str(Path(folder) / "algorithm.weft")
        made = run("synth", network, kind, "--size", size, *more, "-o", store, "--json")
        judged = run("verify", store, "--json")
    figures = made.figures
    return (
        " ".join((network, *more)),
        kind,
        size,
        float(str(figures["time_us"])),
        float(str(figures["time_us"])) / float(str(figures["ideal_us"])),
        str(figures["method"]),
        made.cpu,
        made.peak >> 20,
        judged.cpu,
        judged.peak >> 20,
        bool(figures["verified"] and judged.figures["verified"]),
    )


def compositions(extent: Extent) -> Setup:
    """Small All-Reduces beside the best composition by level, in closed form."""
    title = "All-Reduce: microseconds, and of the best composition of box and rail in closed form"
    networks = ("h100:64,plain", "h100:512,plain") if extent >= Extent.USUAL else ("h100:64,plain",)
    cases = [(name, size) for name in networks for size in ("1KiB", "64KiB", "1MiB")]
    columns = ("network", "size", "us", "composition", "the composition", "were all to overlap")
    more = ("bound", "over composition", "method", "verified")
    return one_table("compositions", title, (*columns, *more), cases, _composition_row)


def _composition_row(case: tuple[str, str]) -> Row:
    name, size = case
    network = load_topology(name)
    result = synthesize(network, "all-reduce", parse_size(size))
    whole, floor = best_compositions(network, parse_size(size))
    us, by_level = result.time / 1e6, whole.time * 1e6
    method = result.to_dict()["method"]
    bound = result.bound.ideal / 1e6
    overlapped = floor.overlapped * 1e6
    return (
        *(name, size, us, by_level, whole.text, overlapped, bound),
        *(us / by_level, method, result.verified),
    )


@dataclass(frozen=True)
class Composition:
    """Steps of an All-Reduce: seconds of latency, and for which the links of each level send."""

    text: str
    latency: float
    sending: tuple[float, float]

    @property
    def time(self) -> float:
        """If each step begins when the one before has ended everywhere."""
        return self.latency + sum(self.sending)

    @property
    def overlapped(self) -> float:
        """If nothing but the busiest link counts."""
        return self.latency + max(self.sending)

    def as_good_as(self, other: Composition) -> bool:
        mine, others = (self.latency, *self.sending), (other.latency, *other.sending)
        return all(one <= two for one, two in zip(mine, others, strict=True))

    def after(self, text: str, level: int, latency: float, sending: float) -> Composition:
        both = [seconds + sending * (one == level) for one, seconds in enumerate(self.sending)]
        return Composition(
            f"{text} {self.text}".strip(), self.latency + latency, (both[0], both[1])
        )


def best_compositions(network: Topology, size: int) -> tuple[Composition, Composition]:
    """The best of all compositions of box and rail: step by step, and were all to overlap.

    A step goes along a factor of a level: in one shot everybody sends all it has to everybody
    else; scattered, it sends each its share, and its share's sum back in the end.
    """
    links = [link for link in range(network.links) if network.src[link] == 0]
    alpha = [2 * int(network.latency[link]) * 1e-12 for link in links]
    speed = [float(network.bandwidth[link]) for link in links]

    @cache
    def of(box: int, rail: int, shares: int) -> list[Composition]:
        """Those of which none is as good as another in all."""
        found = [Composition("", 0.0, (0.0, 0.0))] if box == rail == 1 else list[Composition]()
        for level, left in enumerate((box, rail)):
            for n in (n for n in range(2, left + 1) if left % n == 0):
                rest = (box // n, rail) if level == 0 else (box, rail // n)
                sent = (n - 1) * size / shares / speed[level]
                name = f"{('box', 'rail')[level]}:{n}"
                found += [one.after(name, level, alpha[level], sent) for one in of(*rest, shares)]
                name, both = f"{name} in shares", 2 * alpha[level]
                found += [
                    one.after(name, level, both, 2 * sent / n) for one in of(*rest, shares * n)
                ]
        found.sort(key=lambda one: (one.latency, *one.sending))
        kept = list[Composition]()
        for one in found:
            if not any(other.as_good_as(one) for other in kept):
                kept.append(one)
        return kept

    found = of(*network.dimensions, 1)
    by_time = min(found, key=lambda one: one.time)
    return by_time, min(found, key=lambda one: one.overlapped)
