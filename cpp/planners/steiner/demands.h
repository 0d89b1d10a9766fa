// Chunks of any kind, in classes: chunks alike can share trees.
#pragma once

#include <cstdint>
#include <vector>

#include "base/network.h"
#include "planners/sizes.h"

namespace weft {

// A table of chunks. Sets of NPUs are stored once and named by number.
struct Demands {
    std::vector<std::int64_t> bytes;
    std::vector<std::uint8_t> reduce;     // whether the chunk is a sum over its `pre` set
    std::vector<std::int32_t> pre, post;  // sets: who has it, or a part of the sum; who takes it
    std::vector<std::int32_t> reach;      // set of the NPUs it may visit; -1: any
    Rows sets;

    std::int32_t chunks() const { return static_cast<std::int32_t>(bytes.size()); }
};

// Chunks with the same ends, reach and size.
struct ChunkClass {
    std::int32_t pre, post, reach, size;
    bool reduce;  // several contribute; what one alone contributes is only copied
    std::vector<std::int32_t> chunks;
};

// In order of their first chunks.
std::vector<ChunkClass> group_chunks(const Demands& demands, const Sizes& sizes);

}  // namespace weft
