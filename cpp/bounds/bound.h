// Lower bounds on the time of any algorithm, from what single NPUs must send and receive.
#pragma once

#include <cstdint>
#include <span>

#include "base/network.h"

namespace weft {

// Chunks with the same pre- and postcondition, counted together.
struct ChunkClasses {
    std::span<const std::int32_t> pre, post;  // numbers of sets
    std::span<const std::uint8_t> reduce;
    std::span<const std::int64_t> count;  // chunks
    std::span<const std::int64_t> bytes;  // in all
    std::int64_t smallest, largest;       // bytes of a chunk
    RowsView sets;
};

enum class BoundKind { none, ingress, egress, path };

struct NodeBound {
    ps whole_chunks = 0;               // for chunks that are not cut any further
    ps any_chunks = 0;                 // for any chunking
    BoundKind kind = BoundKind::none;  // of `whole_chunks`
    std::int32_t npu = -1;             // whose sends or receives these are
    std::int32_t other = -1;           // the far end of a path
};

// The strongest bound from the ingress and egress of each NPU. A chunk that comes from afar
// cannot be early: for every distance R, the chunks from at least R away need their slots after
// R. Distances are searched for the NPUs with the strongest plain bounds, while `budget` link
// visits last and until the bound reaches `enough`.
NodeBound node_bound(const Network& network, CostModel cost, const ChunkClasses& classes, ps enough,
                     std::int64_t budget);

}  // namespace weft
