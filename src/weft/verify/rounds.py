"""Judges a log of rounds as it is read."""

from __future__ import annotations

from weft import _core
from weft.algorithm import Algorithm, RoundLog
from weft.verify.verdict import Verdict


def judge_rounds(algorithm: Algorithm, rows: RoundLog, progress: _core.Progress) -> Verdict:
    """Replay the rounds; see `weft.verify.verify`."""
    raise NotImplementedError
