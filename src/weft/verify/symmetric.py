"""Judges symmetric rows by those of one NPU's chunks, and by the translations."""

from __future__ import annotations

from weft.algorithm import Algorithm, SymmetricRows
from weft.verify.verdict import Verdict


def judge_symmetric(algorithm: Algorithm, rows: SymmetricRows) -> Verdict:
    """Judge one NPU's chunks, and that translations of them never collide."""
    raise NotImplementedError
