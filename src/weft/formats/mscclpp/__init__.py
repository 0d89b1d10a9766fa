"""MSCCL++ execution plans: JSON files that MSCCL++'s executor runs; see ``docs/mscclpp.md``."""

from __future__ import annotations

from weft.formats.mscclpp.reader import read, recognise
from weft.formats.mscclpp.writer import OPTIONS, save

__all__ = ["OPTIONS", "read", "recognise", "save"]
