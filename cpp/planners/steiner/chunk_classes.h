// Chunks of any kind, in classes: chunks alike can share trees.
#pragma once

#include <cstdint>
#include <vector>

#include "base/tables.h"
#include "planners/sizes.h"

namespace weft {

// Chunks with the same ends, reach and size.
struct ChunkClass {
    std::int32_t pre, post, reach, size;
    bool reduce;  // several contribute; what one alone contributes is only copied
    std::vector<std::int32_t> chunks;
};

// In order of their first chunks.
std::vector<ChunkClass> group_chunks(const Chunks& chunks, const Sizes& sizes);

}  // namespace weft
