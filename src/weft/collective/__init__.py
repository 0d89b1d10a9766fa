"""What must happen: a collective among a group of NPUs, as chunks with pre- and postconditions."""

from weft.collective.chunks import Chunks
from weft.collective.custom import Move, all_to_allv, custom, permutation
from weft.collective.model import DEFAULT_ALIGNMENT, MAX_CHUNKS, Collective
from weft.collective.patterns import PATTERNS

__all__ = [
    "DEFAULT_ALIGNMENT",
    "MAX_CHUNKS",
    "PATTERNS",
    "Chunks",
    "Collective",
    "Move",
    "all_to_allv",
    "custom",
    "permutation",
]
