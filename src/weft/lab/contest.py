"""One collective on one network, run by Weft, MPI and gloo, all timed alike."""

from __future__ import annotations

import importlib.util
import io
import shutil
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weft.errors import InputError, WeftError
from weft.lab.building import ON_WIRE
from weft.lab.contenders.data import COLLECTIVES, shares
from weft.lab.contenders.gate import VARIABLE, Gate
from weft.lab.counters import Counters, Traffic, read_counters
from weft.lab.environment import mpi_hosts, search_path
from weft.lab.orders import orders
from weft.lab.session import Lab, Start
from weft.lab.space import FILES, end_all_others
from weft.result import Result

ROUNDS = 5
_PATIENCE = 3  # times what the best so far took
_START_S = 30  # for all ranks to be there
# What MPICH can be told to do, by environment; names as its own variables have them.
_MPI_ALGORITHMS = {
    "all-reduce": (
        "ALLREDUCE",
        *("auto", "ring", "recursive_doubling", "recursive_multiplying", "tree", "recexch"),
        *("reduce_scatter_allgather", "k_reduce_scatter_allgather"),
    ),
    "all-gather": (
        "ALLGATHER",
        *("auto", "ring", "brucks", "k_brucks", "recursive_doubling"),
        *("recexch_doubling", "recexch_halving"),
    ),
    "all-to-all": (
        "ALLTOALL",
        *("auto", "pairwise", "scattered", "brucks", "k_brucks", "pairwise_sendrecv_replace"),
    ),
}


@dataclass(frozen=True)
class Entry:
    """A way to run the collective: a library, an algorithm of it, an order of ranks."""

    name: str
    algorithm: str
    order: str
    start: Start


@dataclass(frozen=True, eq=False)
class Trial:
    """What came of an entry.

    Attributes
    ----------
    seconds
        Each timed run, from when the first rank began to when the last ended.
    late
        In each, how much later than the first the last rank began.
    traffic
        Of all timed runs together.
    needed
        Bytes that all ranks together must receive in one run, whatever the algorithm.
    """

    entry: Entry
    seconds: tuple[float, ...]
    late: tuple[float, ...]
    wrong: int
    traffic: Traffic
    needed: int

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def carried(self) -> float:
        """Payload that all links together carried in a run, about."""
        return float(self.traffic.sent.sum()) / ON_WIRE / len(self.seconds)

    @property
    def doubts(self) -> list[str]:
        """Why it says little, if so; sentences."""
        found = list(self.traffic.doubts)
        if self.wrong:
            found.append(f"{self.wrong} elements were wrong")
        if self.carried < 0.99 * self.needed:
            found.append("links carried less than any algorithm needs: bytes went elsewhere")
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "contender": self.entry.name,
            "algorithm": self.entry.algorithm,
            "rank_order": self.entry.order,
            "measured_us": 1e6 * self.median,
            "runs_us": [1e6 * one for one in self.seconds],
            "late_us": [1e6 * one for one in self.late],
            "wrong": self.wrong,
            "needed_bytes": self.needed,
            "carried_bytes": round(self.carried),
            "doubts": self.doubts,
            **self.traffic.to_dict(),
        }


class Contest:
    """Runs entries in a lab, one after the other.

    Parameters
    ----------
    lab
        The network.
    plan
        Weft's algorithm for it, planned at the rates of the lab.
    say
        Is told what is being tried.
    """

    def __init__(self, lab: Lab, plan: Result, say: Callable[[str], None]) -> None:
        (demand,) = plan.algorithm.demands
        self.lab, self.plan, self.say = lab, plan, say
        self.collective, self.size = demand.kind, demand.size
        self._orders = orders(lab.plan)
        self._file = FILES / "plan.weft"
        plan.save(self._file)

    def weft(self) -> Trial:
        """The plan, by Weft's runtime."""
        start = Start(self._words("weft", str(self._file)))
        method = str(self.plan.algorithm.provenance["method"])
        return self._measured(Entry("weft", method, "numbered", start))

    def mpi(self) -> Trial:
        """The best that MPICH does, of all its algorithms and some orders of ranks."""
        variable, *names = _MPI_ALGORITHMS[self.collective]
        cvar = f"MPIR_CVAR_{variable}_INTRA_ALGORITHM"

        def entry(name: str, order: str) -> Entry:
            hosts = mpi_hosts(self.lab.plan, order, self._orders[order])
            words = ["mpiexec", "-n", str(self._ranks), "-f", str(hosts), *self._words("mpi")]
            env = {cvar: name, "MPIR_CVAR_DEVICE_COLLECTIVES": "none"}
            return Entry("mpi", name, order, Start(words, once=True, env=env))

        tried = self._tried(entry(name, "numbered") for name in names)
        best = [one.entry.algorithm for one in tried[:2]]
        others = [name for name in self._orders if name != "numbered"]
        tried += self._tried(entry(name, order) for name in best for order in others)
        return self._measured(min(tried, key=lambda trial: trial.median).entry)

    def gloo(self) -> Trial:
        """Gloo, in the best of some orders of ranks; it has one algorithm."""
        entries = [
            Entry("gloo", "its own", name, Start(self._words("gloo"), order=order))
            for name, order in self._orders.items()
        ]
        return self._measured(self._tried(entries)[0].entry)

    @property
    def _ranks(self) -> int:
        return len(self.lab.plan.topology.members)

    def _words(self, module: str, *more: str) -> list[str]:
        program = f"weft.lab.contenders.{module}"
        return [sys.executable, "-m", program, self.collective, str(self.size), *more]

    def _tried(self, entries: Iterator[Entry] | Sequence[Entry]) -> list[Trial]:
        """One run of each, the fastest first; those that fail or take too long are left out."""
        found: list[Trial] = []
        limit = 60.0 + 100 * self.plan.time / 1e12
        for entry in entries:
            try:
                trial = self._run(entry, 0, 1, limit)
            except WeftError as error:
                self.say(f"{entry.name} {entry.algorithm}, {entry.order}: {error}")
                continue
            self.say(f"{entry.name} {entry.algorithm}, {entry.order}: {trial.median:.3f} s")
            limit = min(limit, _START_S + _PATIENCE * trial.median)
            found.append(trial)
        if not found:
            raise InputError("none of its algorithms ran")
        return sorted(found, key=lambda trial: trial.median)

    def _measured(self, entry: Entry) -> Trial:
        limit = 120.0 + 1000 * self.plan.time / 1e12
        trial = self._run(entry, 1, ROUNDS, limit)
        self.say(f"{entry.name}: {trial.median:.3f} s")
        return trial

    def _run(self, entry: Entry, warm_ups: int, rounds: int, limit_s: float) -> Trial:
        path = FILES / "gate"
        gate = Gate(path, self._ranks, warm_ups, rounds)
        moments: list[Counters] = []
        gate.on_start = gate.on_end = lambda: moments.append(read_counters(self.lab.plan))
        start = replace(entry.start, env={**entry.start.env, VARIABLE: str(path)})
        said = io.BytesIO()
        try:
            code = self.lab.run_uncounted(start, said, said, limit_s)
        finally:
            gate.close()
            end_all_others()
        if code or len(moments) < 2:
            lines = said.getvalue().decode(errors="replace").strip().splitlines()
            raise WeftError(f"failed: {lines[-1] if lines else f'exit code {code}'}")
        runs = [tuple(zip(*spans, strict=True)) for spans in gate.spans]
        seconds = tuple(max(ends) - min(starts) for starts, ends in runs)
        late = tuple(max(starts) - min(starts) for starts, _ in runs)
        traffic = Traffic.between(self.lab.plan, moments[0], moments[1], runs=rounds)
        return Trial(entry, seconds, late, gate.wrong, traffic, self._needed())

    def _needed(self) -> int:
        """Each part of a sum must come to where it is added, and each share to all who want it."""
        ranks = self._ranks
        whole = 4 * shares(self.collective, self.size, ranks) * (ranks - 1)
        return whole * (2 if self.collective == "all-reduce" else ranks)


def why_not(name: str) -> str | None:
    """Why there is no such contender on this machine, if so."""
    needs = {"mpi": ("mpi4py", "mpiexec"), "gloo": ("torch", None), "weft": ("weft", None)}
    module, command = needs[name]
    if importlib.util.find_spec(module) is None:
        return f"{module} is not installed"
    if command and shutil.which(command, path=search_path()) is None:
        return f"there is no {command}"
    return None


def check_collective(name: str) -> None:
    """Raise if libraries have no such collective to compare with."""
    if name not in COLLECTIVES:
        raise InputError(f"--compare is for {', '.join(COLLECTIVES)}, not for {name}")
