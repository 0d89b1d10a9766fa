"""Weft beside classical algorithms: the same collectives, size by size, all verified."""

from weft.comparison.model import Comparison, Refusal, Row, Run
from weft.comparison.running import compare
from weft.comparison.sizes import parse_sizes

__all__ = ["Comparison", "Refusal", "Row", "Run", "compare", "parse_sizes"]
