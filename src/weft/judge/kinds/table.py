"""Judges tables row by row."""

from __future__ import annotations

from weft.algorithm import Algorithm, Transfers
from weft.judge.kinds import Progress, judges
from weft.judge.table import judge_table
from weft.judge.verdict import Verdict


@judges(Transfers)
def judge_listed(algorithm: Algorithm, _rows: Transfers, _progress: Progress = None) -> Verdict:
    """Judge all rows: see `weft.verify`."""
    return judge_table(algorithm)
