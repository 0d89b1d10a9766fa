"""One way in: a network by name or from a file, with failures taken out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from weft.errors import InputError
from weft.quoting import quoted
from weft.topology.builders import SUFFIXES, check_speeds, is_known, parse_topology
from weft.topology.kinds import override_links
from weft.topology.labels import Wishes
from weft.topology.links import find_links
from weft.topology.model import Topology
from weft.topology.rates import NOMINAL, check_rates
from weft.units import parse_bandwidth, parse_latency

_FILE = re.compile(r"[^:,*]{1,200}\.[A-Za-z][A-Za-z0-9]{1,7}")
"""What is no spec, but could be the name of a file."""


def load_topology(
    spec_or_path: str | os.PathLike[str],
    bandwidth: str | Sequence[int] | None = None,
    latency: str | Sequence[int] | None = None,
    without_links: Iterable[str] = (),
    without_npus: Iterable[int] = (),
    degraded_links: Iterable[str] = (),
    without_switches: Iterable[int | str] = (),
    nvlink: str | None = None,
    rates: str = NOMINAL,
) -> Topology:
    """The network a user asks for.

    Parameters
    ----------
    spec_or_path
        A file if it exists, has a slash, or ends in .yaml, .yml or .json; otherwise a spec such
        as ``mesh:8x8`` or a preset such as ``h100:4``. Files of a cluster, such as NCCL's topology
        or what ibnetdiscover prints, are known by their content: see ``docs/cluster-files.md``.
    bandwidth, latency
        A text such as ``50GiB/s`` or ``50GiB/s,75GiB/s`` (``0.5us``), or numbers in B/s (ps).
        One for all links, or one per dimension; a preset or a file takes one, for all its links.
        A file of a cluster takes them by kind of link: ``leaf=50GB/s,spine=100GB/s``.
    without_links
        Failed links, such as ``3-4``, ``3>4`` or ``0-s1``.
    without_npus
        Failed NPUs; all others keep their numbers.
    degraded_links
        Slower links, such as ``3-4=50%`` (of their bandwidth) or ``0>s1=25GB/s``.
    without_switches
        Failed switches, such as ``s0``.
    nvlink
        NVLinks of each GPU into its host's switch, and the rate of one, where a file of a machine
        does not say it: ``18``, ``25GB/s`` or ``18x25GB/s``.
    """
    wishes, bandwidth, latency = parse_wishes(bandwidth, latency, nvlink, rates)
    speeds = _each(bandwidth, parse_bandwidth)
    times = _each(latency, parse_latency)
    _check_no_folder(spec_or_path)
    if is_path(spec_or_path):
        from weft.topology.files import read_topology  # brings parsers, which a spec needs not

        check_speeds(speeds, times)
        topology = override_links(read_topology(spec_or_path, wishes), speeds, times)
    elif wishes.any:
        raise InputError(
            f"topology {quoted(str(spec_or_path))}: --nvlink, and rates by kind of link, are for "
            "files of machines and fabrics"
        )
    elif not is_known(str(spec_or_path)) and _FILE.fullmatch(str(spec_or_path).strip()):
        raise InputError(f"{spec_or_path}: no such file")
    else:
        topology = parse_topology(
            str(spec_or_path), bandwidth=speeds, latency=times, rates=wishes.rates
        )
    lost, gone, broken = list(without_links), list(without_npus), list(without_switches)
    if lost or gone or broken:
        topology = topology.without(links=lost, npus=gone, switches=broken)
    for text in degraded_links:
        topology = _degraded(topology, text)
    return topology


def _degraded(topology: Topology, text: str) -> Topology:
    """The network with one link as slow as ``3-4=50%`` or ``3-4=25GB/s`` says."""
    link, _, speed = (part.strip() for part in text.partition("="))
    if not speed:
        raise InputError(
            f"degraded link {quoted(text)} says no speed; write it like 3-4=50% or 3>4=25GB/s"
        )
    if speed.endswith("%"):
        return topology.scaled(link, speed)
    pairs, _ = find_links(topology, link, "degrade")
    return topology.with_link(*pairs[0], bandwidth=speed, both=len(pairs) > 1)


Given = str | Sequence[int] | None


def parse_wishes(
    bandwidth: Given, latency: Given, nvlink: str | None, rates: str = NOMINAL
) -> tuple[Wishes, Given, Given]:
    """What is said by kind of link, and of NVLink; and the rates that are said without."""
    named: dict[str, dict[str, int] | None] = {"bandwidth": None, "latency": None}
    plain: dict[str, Given] = {"bandwidth": bandwidth, "latency": latency}
    for what, parse in (("bandwidth", parse_bandwidth), ("latency", parse_latency)):
        text = plain[what]
        if isinstance(text, str) and "=" in text:
            named[what] = _by_kind(what, text, parse)
            plain[what] = None
    count, rate = _nvlink(nvlink)
    check_rates(rates)
    wishes = Wishes(rates, count, rate, named["bandwidth"], named["latency"])
    return wishes, plain["bandwidth"], plain["latency"]


def wishes_by_kind(
    bandwidth: Given, latency: Given, nvlink: str | None, rates: str = NOMINAL
) -> Wishes:
    """What is said of a machine, where a rate for all links alike makes no sense."""
    wishes, *plain = parse_wishes(bandwidth, latency, nvlink, rates)
    words = (("bandwidth", "leaf=50GB/s"), ("latency", "leaf=1us"))
    for value, (what, example) in zip(plain, words, strict=True):
        if value is not None:
            raise InputError(f"{what} {quoted(value)} is for all links; say of which: {example}")
    return wishes


def _by_kind(what: str, text: str, parse: Callable[[str], int]) -> dict[str, int]:
    """From ``leaf=50GB/s,spine=100GB/s`` to numbers."""
    said: dict[str, int] = {}
    for part in text.split(","):
        kind, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not kind or kind in said:
            raise InputError(
                f"{what} {quoted(text)}: {quoted(part.strip())} does not belong there; say each "
                "kind of link once, as in leaf=50GB/s,spine=100GB/s"
            )
        said[kind.lower()] = parse(value)
    return said


def _nvlink(text: str | None) -> tuple[int | None, int | None]:
    """How many NVLinks, and B/s of one, from ``18``, ``25GB/s`` or ``18x25GB/s``."""
    if text is None:
        return None, None
    match = re.fullmatch(r"\s*(?:([0-9]{1,3})(?:\s*x|\s*$))?\s*([0-9.]+\s*[A-Za-z].*)?", text)
    if match is None or not any(match.groups()):
        raise InputError(
            f"NVLink {quoted(text)} is no number of links and no rate; write it like 18, 25GB/s or "
            "18x25GB/s"
        )
    count, rate = match.groups()
    return int(count) if count else None, parse_bandwidth(rate) if rate else None


def _each(values: str | Sequence[int] | None, parse: Callable[[str], int]) -> Sequence[int] | None:
    return [parse(text) for text in values.split(",")] if isinstance(values, str) else values


def _check_no_folder(text: str | os.PathLike[str]) -> None:
    """Raise if it is a folder; a spec stays one whatever lies around under its name."""
    try:
        where = Path(text)
        if not where.is_dir() or (isinstance(text, str) and (not text.strip() or is_known(text))):
            return
        traces = next(where.glob("*.et"), None)
    except (OSError, ValueError):
        return
    if traces is None:
        raise InputError(
            f"{text} is a folder, not a network; give a topology file or a spec such as mesh:8x8"
        )
    raise InputError(
        f"{text} is a folder of traces, not a network: `weft simulate {text}` runs it, `weft show "
        f"{text}` says what it is, `weft lower {text} --topology mesh:8x8` lowers its collectives"
    )


def is_path(text: str | os.PathLike[str]) -> bool:
    """Whether it names a file rather than a spec."""
    if not isinstance(text, str) or "/" in text or text.lower().endswith(SUFFIXES):
        return True
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def as_topology(topology: Topology | str | os.PathLike[str]) -> Topology:
    """A network, or the one that `load_topology` makes of a spec or a path."""
    return topology if isinstance(topology, Topology) else load_topology(topology)
