// Chunks of many sizes, in classes: sizes alike share slots, and what hops cost is known for each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hops.h"

namespace weft {

// Chunks of nearly one size are planned as if they had the largest's.
struct Sizes {
    std::vector<std::int64_t> bytes;     // per size: the largest chunk of it
    std::vector<std::int32_t> of_chunk;  // per chunk: number of its size
};

Sizes group_sizes(std::span<const std::int64_t> chunk_bytes);

// What each hop costs for chunks of each size.
std::vector<HopTimes> time_hops(const Network& network, const Hops& hops, CostModel cost,
                                const Sizes& sizes);

}  // namespace weft
