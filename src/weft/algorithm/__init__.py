"""The meeting point: who sends which chunk to whom, after what, and when."""

from weft.algorithm.cells import Cells, cells_of
from weft.algorithm.model import Algorithm, last_ends
from weft.algorithm.transfers import COLUMN_TYPES, Buffer, Routes, Transfers, place
from weft.algorithm.weaving import Program, Woven, weave

__all__ = [
    "COLUMN_TYPES",
    "Algorithm",
    "Buffer",
    "Cells",
    "Program",
    "Routes",
    "Transfers",
    "Woven",
    "cells_of",
    "last_ends",
    "place",
    "weave",
]
