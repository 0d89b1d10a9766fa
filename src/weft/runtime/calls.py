"""What a rank is asked to run: the algorithm as far as it was worked out, and the arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.algorithm import Algorithm
from weft.errors import InputError
from weft.quoting import quoted
from weft.result import Result
from weft.runtime import buffers
from weft.runtime.cutting import Cut, Fitted
from weft.runtime.program import Programs
from weft.runtime.transports import Transport

Plan = Algorithm | Result | Programs
KEPT = 64  # algorithms, and lengths of each


class Planned:
    """An algorithm that is run, with what was worked out for it."""

    def __init__(self, algorithm: Plan, size: int, *, reproducible: bool) -> None:
        self.kept = algorithm  # its id is not given to another meanwhile
        if isinstance(algorithm, Programs):
            self.programs = algorithm
        elif isinstance(algorithm, Result | Algorithm):
            found = algorithm.algorithm if isinstance(algorithm, Result) else algorithm
            self.programs = Programs(found, reproducible=reproducible)
        else:
            raise InputError(f"a {type(algorithm).__name__} is no algorithm; see weft.load")
        self.algorithm = self.programs.algorithm
        if self.programs.npus > size:
            raise InputError(
                f"the algorithm is for {self.programs.npus} NPUs, but there are {size} ranks"
            )
        self._fitted: dict[tuple[int, ...], Fitted] = {}
        self._counts: dict[tuple[int, ...], int] = {}
        self._lengths: dict[tuple[int, int, int], buffers.Fit] = {}
        home = buffers.is_at_home(self.algorithm)
        self.shares = [home and not one.pattern.own_buffers for one in self.algorithm.demands]

    def call(
        self,
        rank: int,
        send: object,
        recv: object,
        dtype: str | None,
        count: int | Sequence[int] | None,
    ) -> Call:
        demands = self.algorithm.demands
        given = buffers.gathered(demands, rank, send, recv)
        kind = buffers.type_of([array for one in given for array in one.arrays], dtype)
        if count is None:
            counts = [self._count(rank, at, one) for at, one in enumerate(given)]
        else:
            counts = [count] * len(demands) if isinstance(count, int) else list(count)
        if len(counts) != len(demands) or any(one < -1 for one in counts):
            raise InputError(f"count is {quoted(str(count))}; expected one for each collective")
        return Call(rank, given, kind, counts)

    def _count(self, rank: int, demand: int, given: buffers.Given) -> int:
        key = rank, demand, given.in_place, *map(len, given.arrays)
        if key not in self._counts:
            if len(self._counts) >= KEPT:
                self._counts.clear()
            self._counts[key] = self._searched_count(rank, demand, given)
        return self._counts[key]

    def _searched_count(self, rank: int, demand: int, given: buffers.Given) -> int:
        def lengths(count: int) -> buffers.Fit:
            return self.lengths(rank, demand, count)

        collective = self.algorithm.demands[demand]
        found = buffers.found_count(collective, given, lengths)
        if found == -2:
            sizes = " and ".join(str(array.size) for array in given.arrays)
            raise InputError(
                f"no {collective.kind} among {collective.ranks} NPUs has buffers of {sizes} "
                f"elements at rank {rank}"
            )
        return found

    def lengths(self, rank: int, demand: int, count: int) -> buffers.Fit:
        """How long a rank's buffers are."""
        key = rank, demand, count
        if key not in self._lengths:
            if len(self._lengths) >= KEPT:
                self._lengths.clear()
            counts = [0] * len(self.algorithm.demands)
            counts[demand] = count
            sides = Cut(self.algorithm, counts).sides(rank)
            self._lengths[key] = buffers.fit(sides, demand, shares=self.shares[demand])
        return self._lengths[key]

    def fitted(self, rank: int, counts: Sequence[int], transport: Transport) -> Fitted:
        key = tuple(counts)
        if key not in self._fitted:
            while len(self._fitted) >= KEPT:
                del self._fitted[next(iter(self._fitted))]
            program = self.programs.of(rank)
            lanes = transport.lanes(program, self.algorithm)
            self._fitted[key] = Cut(self.algorithm, counts).fit(program, lanes)
        return self._fitted[key]


@dataclass
class Call:
    """One call of `run`, as far as this rank knows."""

    rank: int
    given: list[buffers.Given]
    type: str
    counts: list[int]

    def check(self, plan: Planned) -> None:
        for at, (demand, one) in enumerate(zip(plan.algorithm.demands, self.given, strict=True)):
            lengths = plan.lengths(self.rank, at, self.counts[at])
            buffers.check_lengths(demand, one, lengths, self.counts[at])

    def views(self, plan: Planned) -> list[tuple[buffers.Array, buffers.Array]]:
        return [
            buffers.views(one, plan.lengths(self.rank, at, self.counts[at]))
            for at, one in enumerate(self.given)
        ]
