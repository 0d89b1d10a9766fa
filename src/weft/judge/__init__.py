"""The independent judge: whether an algorithm does what it claims."""

from weft import _core
from weft.algorithm import Algorithm
from weft.judge.kinds import JUDGES
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
    chunk after the other by the first chunks and the period; repaired ones by the plan of the
    network before failures, and by what that loses; compositions by level by one NPU's moves and
    the ways up through switches.

    Raises
    ------
    InputError
        If there is no judge for rows of its kind, if judging it would take more than 8 GiB for
        sets of contributions, or if it has 2^32 rows in a table.
    """
    return JUDGES.find(algorithm.rows.kind)(algorithm, progress)
