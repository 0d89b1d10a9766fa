"""The numbers of Chakra's schema: types of nodes, collectives, kinds of attributes."""

from __future__ import annotations

CHAKRA_VERSION = "0.0.4"
TAGS = 500_000_000  # ASTRA-sim takes tags modulo this

# NodeType
METADATA, COMP, COMM_SEND, COMM_RECV, COMM_COLL = 1, 4, 5, 6, 7

# CollectiveCommType, as patterns
COMM_TYPES = {
    0: "all-reduce",
    1: "reduce",
    2: "all-gather",
    3: "gather",
    4: "scatter",
    5: "broadcast",
    6: "all-to-all",
    7: "reduce-scatter",
    8: "reduce-scatter",
    9: "barrier",
}
# The first number where a pattern has several.
COMM_TYPE_OF = {kind: number for number, kind in reversed(COMM_TYPES.items())}

# Fields of AttributeProto that hold a value, one for each kind
INT32, INT64, UINT64, SINT64_LIST, BOOL, BOOL_LIST, TEXT = 7, 9, 13, 18, 27, 28, 29

# Bits of the core's column `present`, one for each attribute it knows
HAS_SRC, HAS_DST, HAS_SIZE, HAS_TAG = 1, 2, 4, 8
HAS_CHUNKS = 16 | 32 | 64  # msg_chunk_cnt, msg_chunk_idx and total_chunk_cnt
