"""MSCCL++ execution plans: JSON files that MSCCL++'s executor runs; see ``docs/mscclpp.md``."""

from __future__ import annotations

from weft.formats.format import FORMATS, Format, Option
from weft.formats.mscclpp.reader import read, recognise
from weft.formats.mscclpp.switching import is_switched
from weft.formats.mscclpp.writer import save
from weft.units import parse_size

__all__ = ["read", "recognise", "save"]

MSCCLPP = Format(
    "mscclpp",
    "an MSCCL++ execution plan as JSON",
    recognise,
    read,
    save,
    ".json",
    {
        "name": Option("what the runtime calls the algorithm"),
        "gpus_per_node": Option(
            "beyond a node, ports are used; by default there is one node", "N", int
        ),
        "threads": Option("threads of a thread block, 1024", "N", int),
        "thread_blocks": Option("thread blocks that a GPU runs at once, 108", "N", int),
        "min_size": Option("the least message it is used for", "SIZE", parse_size),
        "max_size": Option("the greatest message it is used for", "SIZE", parse_size),
        "max_offset": Option(
            "offsets in buffers stay below this; 4GiB for MSCCL++ 0.9 and older",
            "SIZE",
            parse_size,
        ),
    },
    hints=("size", "group", "root"),
    in_switches=is_switched,
    rank=40,
)
FORMATS.add(MSCCLPP.name, MSCCLPP, rank=MSCCLPP.rank)
