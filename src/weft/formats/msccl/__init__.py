"""MSCCL-XML: programs of thread blocks, as MSCCL and RCCL load them."""

from weft.formats.format import FORMATS, Format, Option
from weft.formats.msccl.reader import read, recognise
from weft.formats.msccl.writer import write

__all__ = ["read", "recognise", "write"]

MSCCL = Format(
    "msccl",
    "MSCCL-XML, a program of thread blocks",
    recognise,
    read,
    write,
    ".xml",
    {
        "name": Option("what the runtime calls the algorithm"),
        "dialect": Option("msccl (the default) or rccl", "NAME"),
        "protocol": Option("Simple (the default), LL or LL128", "NAME"),
    },
    hints=("size", "group", "root"),
    in_switches=None,
    rank=30,
)
FORMATS.add(MSCCL.name, MSCCL, rank=MSCCL.rank)
