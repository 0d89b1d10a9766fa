"""What must happen: a collective among a group of NPUs, as chunks with pre- and postconditions."""

from weft.collective.chunks import Chunks, Ends, Sets
from weft.collective.custom import (
    Move,
    all_reduce_at,
    all_reduce_of,
    all_to_allv,
    custom,
    permutation,
)
from weft.collective.groups import format_group, layout_groups, parse_group
from weft.collective.model import DEFAULT_ALIGNMENT, MAX_CHUNKS, Collective
from weft.collective.patterns import PATTERNS
from weft.collective.request import Plan, Request, check_given, parse_chunks

__all__ = [
    "DEFAULT_ALIGNMENT",
    "MAX_CHUNKS",
    "PATTERNS",
    "Chunks",
    "Collective",
    "Ends",
    "Move",
    "Plan",
    "Request",
    "Sets",
    "all_reduce_at",
    "all_reduce_of",
    "all_to_allv",
    "check_given",
    "custom",
    "format_group",
    "layout_groups",
    "parse_chunks",
    "parse_group",
    "permutation",
]
