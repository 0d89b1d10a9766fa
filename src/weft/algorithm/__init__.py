"""The meeting point: who sends which chunk to whom, after what, and when."""

from weft.algorithm.model import Algorithm
from weft.algorithm.transfers import COLUMN_TYPES, Buffer, Routes, Transfers, place

__all__ = ["COLUMN_TYPES", "Algorithm", "Buffer", "Routes", "Transfers", "place"]
