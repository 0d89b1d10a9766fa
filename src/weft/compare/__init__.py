"""Weft beside classical algorithms: the same collectives, size by size, all verified."""

from weft.compare.model import Comparison, Refusal, Row, Run
from weft.compare.running import compare
from weft.compare.sizes import parse_sizes

__all__ = ["Comparison", "Refusal", "Row", "Run", "compare", "parse_sizes"]
