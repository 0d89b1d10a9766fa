"""The independent judge: whether an algorithm does what it claims."""

from weft import _core
from weft.algorithm import (
    Algorithm,
    PeriodicRows,
    RepairedExchange,
    RepairedRows,
    RoundLog,
    SymmetricRows,
)
from weft.judge.periodic import judge_periodic
from weft.judge.repaired import judge_repaired
from weft.judge.repaired_exchange import judge_repaired_exchange
from weft.judge.rounds import judge_rounds
from weft.judge.symmetric import judge_symmetric
from weft.judge.table import judge_table
from weft.judge.verdict import Verdict, WrongAlgorithmError

__all__ = ["Verdict", "WrongAlgorithmError", "verify"]


def verify(algorithm: Algorithm, *, progress: _core.Progress | None = None) -> Verdict:
    """Judge all an algorithm claims: its structure, its logic and, if it is timed, its times.

    The logic is judged in the order of the rows; where there are times, also in the order of
    the times: a row reads when it starts and writes when it ends, and what arrives at a time
    can be sent on at that time. Trusts nothing and needs no tolerance.

    A `reduce` row into a place that holds nothing leaves there what it brings: an NPU that
    only relays begins with an empty sum. Results lie in OUTPUT where a row wrote there, else in
    HOME or INPUT: in either at first, in those that rows wrote once one did. Without a topology
    any NPU number may relay.

    Compact rows are judged as they are: logs of rounds as they are read, those of symmetric
    networks by the rows of one NPU's chunks and the translations, those of trees that carry one
    chunk after the other by the first chunks and the period; mended ones by the plan of the
    network before failures, and by what that loses.

    Raises
    ------
    InputError
        If judging it would take more than 8 GiB for sets of contributions, or it has 2^32 rows
        in a table.
    """
    if isinstance(algorithm.rows, RoundLog):
        return judge_rounds(algorithm, algorithm.rows, progress or _core.Progress())
    if isinstance(algorithm.rows, PeriodicRows):
        return judge_periodic(algorithm, algorithm.rows)
    if isinstance(algorithm.rows, SymmetricRows):
        return judge_symmetric(algorithm, algorithm.rows)
    if isinstance(algorithm.rows, RepairedRows):
        return judge_repaired(algorithm, algorithm.rows)
    if isinstance(algorithm.rows, RepairedExchange):
        return judge_repaired_exchange(algorithm, algorithm.rows)
    return judge_table(algorithm)
