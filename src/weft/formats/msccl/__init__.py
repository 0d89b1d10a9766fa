"""MSCCL-XML: programs of thread blocks, as MSCCL and RCCL load them."""

from weft.formats.msccl.reader import read, recognise
from weft.formats.msccl.writer import write

__all__ = ["read", "recognise", "write"]
