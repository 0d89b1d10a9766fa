"""The meeting point: who sends which chunk to whom, after what, and when."""

from weft.algorithm.activity import Activity, chunk_bytes
from weft.algorithm.cells import Cells, cells_of
from weft.algorithm.description import described
from weft.algorithm.levels import LevelPart, LevelRows, LevelStep, Stage
from weft.algorithm.linearization import Linearized, Program, linearize
from weft.algorithm.log_file import UnnamedFile
from weft.algorithm.model import Algorithm, last_ends
from weft.algorithm.periodic import PeriodicRows
from weft.algorithm.repaired import RepairedExchange, RepairedRows
from weft.algorithm.rounds import RoundLog
from weft.algorithm.rows import CompactRows, Rows
from weft.algorithm.spread import SpreadPart, SpreadRows, SpreadStep
from weft.algorithm.symmetric import SymmetricRows
from weft.algorithm.timing import Timing
from weft.algorithm.transfers import COLUMN_TYPES, Buffer, Routes, Transfers, place

__all__ = [
    "COLUMN_TYPES",
    "Activity",
    "Algorithm",
    "Buffer",
    "Cells",
    "CompactRows",
    "LevelPart",
    "LevelRows",
    "LevelStep",
    "Linearized",
    "PeriodicRows",
    "Program",
    "RepairedExchange",
    "RepairedRows",
    "RoundLog",
    "Routes",
    "Rows",
    "SpreadPart",
    "SpreadRows",
    "SpreadStep",
    "Stage",
    "SymmetricRows",
    "Timing",
    "Transfers",
    "UnnamedFile",
    "cells_of",
    "chunk_bytes",
    "described",
    "last_ends",
    "linearize",
    "place",
]
