"""What network ranks are on: structure, rates and α of its links, from measurements."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from weft.errors import InputError
from weft.progress import Tracker
from weft.runtime.communicator import Communicator
from weft.runtime.crossings import Steps, Ways, apart, crossings, fits
from weft.runtime.errors import DisagreementError
from weft.runtime.flows import Floats, Meter, Pair, RankMeter
from weft.runtime.structure import Structure, structure_of
from weft.topology import Topology
from weft.topology.labels import Labels
from weft.units import PS_PER_US, format_bandwidth

MOST_RANKS = 128
_ALIKE = 0.85  # of a rate: less is not the same
_BOUNDED = 1.1
_DIGITS = 4
_NAMED = 4
_KEPT = "they are as given, or as another link between the same ends"


@dataclass(frozen=True, eq=False)
class Probed:
    """A network as it was found.

    Attributes
    ----------
    topology
        With the rates and α that were measured.
    structure
        What it is taken to be, in words.
    spread
        Of each link's rate over the repeats, the largest less the smallest over the median; NaN
        where nothing that was measured crosses the link.
    at_least
        Links that may be faster: others held up all that crosses them.
    checks
        Pairs at once, as measured and as the network has it, in bytes per second.
    doubts
        What could not be told: sentences.
    """

    topology: Topology
    structure: str
    spread: Floats
    at_least: NDArray[np.bool_]
    checks: Sequence[tuple[str, float, float]]
    doubts: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines."""
        net = self.topology
        rows = zip(net.bandwidth.tolist(), net.latency.tolist(), self.spread.tolist(), strict=True)
        return {
            "structure": self.structure,
            "links": [
                {
                    "link_name": net.link_name(link),
                    "bandwidth_GBps": rate / 1e9,
                    "latency_us": delay / PS_PER_US,
                    "spread": None if np.isnan(spread) else spread,
                    "at_least": bool(self.at_least[link]),
                }
                for link, (rate, delay, spread) in enumerate(rows)
            ],
            "checks": [
                {
                    "flows": words,
                    "measured_GBps": measured / 1e9,
                    "expected_GBps": expected / 1e9,
                    "residual": measured / expected - 1,
                }
                for words, measured, expected in self.checks
            ],
            "doubts": list(self.doubts),
        }


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is to be found out, and how.

    Attributes
    ----------
    topology
        A network whose links and switches are kept, with other rates; None to find them.
    time_s
        How long it may take, roughly.
    repeats
        How often each measurement is made.
    scale
        What measured rates are of those to be written; α is divided by it.
    """

    topology: Topology | None = None
    time_s: float = 10.0
    repeats: int = 5
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.time_s < float("inf"):
            raise InputError(f"the time is {self.time_s:g} s; expected more than 0")
        if self.repeats < 1:
            raise InputError(f"repeats is {self.repeats}; expected 1 or more")
        if not 0 < self.scale < float("inf"):
            raise InputError(f"the scale is {self.scale:g}; expected more than 0")


def probe(communicator: Communicator, wanted: Wanted, report: Tracker | None = None) -> Probed:
    """Measure the network that these ranks are on; all call this together, and all get it."""
    given, ranks = wanted.topology, communicator.size
    if not 2 <= ranks <= MOST_RANKS:
        raise InputError(f"there are {ranks} ranks; a probe takes 2 to {MOST_RANKS}")
    if given is not None and len(given.members) != ranks:
        raise InputError(
            f"{given.title} has {len(given.members)} NPUs, but there are {ranks} ranks"
        )
    own = [] if given is None else [column.tolist() for column in given.columns]
    asked = [own, wanted.time_s, wanted.repeats, wanted.scale]
    digest = hashlib.sha256(msgspec.json.encode(asked)).hexdigest()
    host = socket.gethostname()
    said = communicator.exchange(msgspec.json.encode(_Rank(digest, host, communicator.ways)))
    heard = [msgspec.json.decode(text, type=_Rank) for text in said]
    for rank, other in enumerate(heard):
        if other.digest != heard[0].digest:
            raise DisagreementError(f"rank 0 and rank {rank} were asked to probe otherwise")
    npus = range(ranks) if given is None else given.members.tolist()
    ways = {
        (npus[rank], npus[peer]): some
        for rank, one in enumerate(heard)
        for peer, some in one.ways.items()
    }
    meter = RankMeter(communicator, wanted.time_s, wanted.repeats)
    found = probed(meter, given, ways, report or Tracker(), wanted.scale)
    how = f"probed over {communicator.transport}, median of {wanted.repeats}"
    hosts = dict(zip(npus, (one.host for one in heard), strict=True))
    labels = _labels(found, hosts, how, None if given is None else given.labels)
    return replace(found, topology=replace(found.topology, labels=labels))


class _Rank(msgspec.Struct):
    """What a rank tells before it begins."""

    digest: str
    host: str
    ways: dict[int, list[Steps]]


def _labels(found: Probed, hosts: Mapping[int, str], how: str, given: Labels | None) -> Labels:
    """Where the figures in a file come from; what nodes are called stays."""
    net, notes = found.topology, (f"{how}: {found.structure}", *found.doubts)
    if given is not None:
        return replace(given, notes=notes)
    return Labels(
        tuple(net.node_name(node) for node in range(net.nodes)),
        tuple("npu" if node < net.npus else "switch" for node in range(net.nodes)),
        tuple(hosts.get(node, "") for node in range(net.nodes)),
        notes,
    )


def probed(
    meter: Meter, given: Topology | None, ways: Ways, report: Tracker, scale: float = 1.0
) -> Probed:
    """Measure, and find a network that gives these figures.

    Parameters
    ----------
    given
        A network whose links and switches are kept, with other rates; None to find them.
    ways
        The links that bytes of a pair take, where its transport knows.
    scale
        What measured rates are of those to be written; α is divided by it.
    """
    if given is None:
        report.enter("looking for links and switches")
        structure = structure_of(meter, ways)
    else:
        structure = Structure(given, f"that of {given.title}")
    fit = _Fit(meter, structure, ways if fits(structure.topology, ways) else {}, scale)
    report.enter("measuring links")
    fit.measure(report)
    fit.check()
    if structure.shared is not None and fit.short:
        fit = _Fit(meter, structure.shared, {}, scale)
        fit.measure(report)
        fit.check()
    report.enter("measuring α")
    return fit.result(fit.delays())


@dataclass
class _Fit:
    """Rates of the links of one structure."""

    meter: Meter
    structure: Structure
    ways: Ways
    scale: float
    checks: list[tuple[str, float, float]] = field(default_factory=list)
    short: bool = False  # whether pairs at once are slower than the links

    def __post_init__(self) -> None:
        net = self.net = self.structure.topology
        self.doubts = list(self.structure.doubts)
        self.members = net.members.tolist()
        self.pairs, self.crossing = crossings(net, self.ways)
        if not self.pairs:
            raise InputError(f"{net.title} joins no two NPUs, so there is nothing to measure")
        self.rank = net.ranks
        self.rate, self.spread = np.zeros(net.links), np.full(net.links, np.nan)
        self.at_least = np.zeros(net.links, dtype=np.bool_)

    def flows(self, link: int) -> tuple[int, ...]:
        """Pairs that together use all of a link: each end of them once, if there are enough."""
        found = np.flatnonzero(self.crossing[:, link] > 0)
        if not len(found):
            return ()
        ends = [np.unique([self.pairs[at][side] for at in found]) for side in (0, 1)]
        place = {self.pairs[at]: int(at) for at in found}
        chosen = set()
        for turn in range(max(map(len, ends))):
            for shift in range(len(ends[1])):  # nobody sends to itself
                one = ends[0][turn % len(ends[0])], ends[1][(turn + shift) % len(ends[1])]
                at = place.get((int(one[0]), int(one[1])))
                if at is not None and at not in chosen:
                    chosen.add(at)
                    break
        return tuple(sorted(chosen))

    def rates(self, flows: Sequence[int], weights: Floats | None = None) -> Floats:
        ends = [(int(self.rank[a]), int(self.rank[b])) for a, b in self.named(flows)]
        return self.meter.rates(ends, weights)

    def named(self, flows: Sequence[int]) -> list[Pair]:
        return [self.pairs[at] for at in flows]

    def measure(self, report: Tracker) -> None:
        """The rate of each link: those that share nothing at once."""
        links: dict[tuple[int, ...], list[int]] = {}
        for link in range(self.net.links):
            links.setdefault(self.flows(link), []).append(link)
        self._unknown(links.pop((), []))
        rounds = self._rounds([*links])
        self.meter.expect(len(rounds) + 1 + bool(self.net.switches))
        report.begin(len(rounds))
        for sets in rounds:
            flows = [at for some in sets for at in some]
            crossed = [(link, some) for some in sets for link in links[some]]
            weights = np.array(
                [self.crossing[flows, link] * np.isin(flows, some) for link, some in crossed]
            )
            for (link, _), rates in zip(crossed, self.rates(flows, weights).T, strict=True):
                self._take(link, rates)
            report.advance()
        for some, own_links in links.items():
            for link in own_links:
                self.at_least[link] = self._held_up(some, link)

    def _take(self, link: int, rates: Floats) -> None:
        self.rate[link] = np.median(rates)
        self.spread[link] = np.ptp(rates) / self.rate[link]

    def _unknown(self, links: list[int]) -> None:
        self.unknown = links
        self.rate[links] = self.net.bandwidth[links] * self.scale
        if links:
            names = _some([self.net.link_name(link) for link in links])
            self.doubts.append(f"no bytes that were measured cross {names}: {_KEPT}")

    def _rounds(self, sets: list[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
        """Sets of flows that share no link, no sender and no receiver go together."""
        rounds: list[tuple[list[tuple[int, ...]], set[tuple[str, int]]]] = []
        for flows in sets:
            used = {("link", int(at)) for at in np.flatnonzero(self.crossing[list(flows)].any(0))}
            for a, b in self.named(flows):
                used |= {("out", a), ("in", b)}
            for together, taken in rounds:
                if not used & taken:
                    together.append(flows)
                    taken |= used
                    break
            else:
                rounds.append(([flows], used))
        return [together for together, _ in rounds]

    def _held_up(self, flows: Sequence[int], link: int) -> bool:
        """Whether other links let through no more than was measured over this one."""
        others = self.rate.copy()
        others[link] = np.inf
        through = self._through(flows, others) @ self.crossing[list(flows), link]
        return bool(through <= _BOUNDED * self.rate[link])

    def _through(self, flows: Sequence[int], rate: Floats) -> Floats:
        """The rates of flows at once, if each gets its share of each of its links."""
        crossing = self.crossing[list(flows)]
        with np.errstate(divide="ignore"):
            share = rate / crossing.sum(0)
        return np.array([share[row > 0].min() for row in crossing])

    def check(self) -> None:
        """Let all links, or one flow from and to every rank, be busy at once."""
        if not self.net.switches:
            everything = range(len(self.pairs))
            together = self.rates(everything)
            expected = self._through(everything, self.rate)
            found = np.median(together, axis=0)
            self.checks.append(("all links", float(found.sum()), float(expected.sum())))
            if (slow := found < _ALIKE * expected).any():
                self._say_shared(slow)
                for link in np.flatnonzero(~np.isnan(self.spread)).tolist():
                    self._take(link, together @ self.crossing[:, link])
            return
        place = {pair: at for at, pair in enumerate(self.pairs)}
        n = len(self.members)
        for shift in sorted({1, n // 2}):
            around = [(self.members[k], self.members[(k + shift) % n]) for k in range(n)]
            flows = [place[pair] for pair in around if pair in place]
            if not flows:
                continue
            carried = float(np.median(self.rates(flows, np.ones((1, len(flows))))))
            expected = self._through(flows, self.rate)
            words = f"each rank to the one {shift} on"
            self.checks.append((words, carried, float(expected.sum())))
        if not self.checks:
            return
        _, least, most = min(self.checks, key=lambda one: one[1] / one[2])
        self.short = least < _ALIKE * most
        if self.short:
            self.doubts.append(
                f"one flow from each rank carries {format_bandwidth(least / self.scale)} in all, "
                f"{format_bandwidth(most / self.scale)} are expected: something is shared that "
                "this structure does not have"
            )

    def _say_shared(self, slow: NDArray[np.bool_]) -> None:
        names = [f"{a} > {b}" for (a, b), one in zip(self.pairs, slow, strict=True) if one]
        self.doubts.append(
            f"{_some(names)}: slower when all links are busy; rates are those of all at once"
        )

    def delays(self) -> Floats:
        """α of each link, in seconds: those of a pair's links add up to the pair's."""
        place = {pair: at for at, pair in enumerate(self.pairs)}
        once = [pair for pair in self.pairs if pair[0] < pair[1] or pair[::-1] not in place]
        found = np.zeros(len(once))
        for turn in apart(once):
            ends = tuple((int(self.rank[a]), int(self.rank[b])) for a, b in (once[k] for k in turn))
            found[turn] = self.meter.delays(ends)
        both = [*once, *(pair[::-1] for pair in once)]
        known = [at for at, pair in enumerate(both) if pair in place]
        rows = self.crossing[[place[both[at]] for at in known]]
        fitted = np.linalg.lstsq(rows, np.tile(found, 2)[known], rcond=None)[0]
        return np.asarray(np.maximum(fitted, 0.0))

    def result(self, delays: Floats) -> Probed:
        net, rates = self.net, self.rate / self.scale
        delays = delays * self.scale * PS_PER_US * 1e6
        for link in self.unknown:
            delays[link] = net.latency[link]
            alike = (net.src == net.src[link]) & (net.dst == net.dst[link])
            for twin in np.flatnonzero(alike & ~np.isnan(self.spread))[:1]:
                rates[link], delays[link] = rates[twin], delays[twin]
        topology = replace(
            net,
            name=f"probed {net.name}",
            bandwidth=np.array([_rounded(rate) for rate in rates], dtype=np.int64),
            latency=np.array([_rounded(delay) for delay in delays], dtype=np.int64),
            translates=False,
            whole=None,
            labels=None,
        )
        checks = [(words, one / self.scale, two / self.scale) for words, one, two in self.checks]
        words = self.structure.words
        return Probed(topology, words, self.spread, self.at_least, checks, self.doubts)


def _rounded(value: float) -> int:
    """To a few digits: more of them are noise."""
    return round(float(f"{value:.{_DIGITS}g}"))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
