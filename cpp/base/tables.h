// The tables of an algorithm as kernels see them: views of columns that whoever calls keeps.
// Columns that are absent are empty. Booleans are bytes, so that any byte is harmless.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/network.h"

namespace weft {

// Chunks: see `weft.collective.Chunks`. Sets of NPUs are stored once and named by number.
struct Chunks {
    std::span<const std::int64_t> bytes;
    std::span<const std::int32_t> pre,
        post;                              // sets: who has it, or a part of the sum; who takes it
    std::span<const std::uint8_t> reduce;  // whether the chunk is a sum over its `pre` set
    std::span<const std::int32_t> reach;   // set of the NPUs it may visit; -1: any
    RowsView sets;                         // each ascending

    std::int32_t size() const { return static_cast<std::int32_t>(bytes.size()); }
    std::span<const std::int32_t> holders(std::int32_t chunk) const { return sets[pre[chunk]]; }
    std::span<const std::int32_t> takers(std::int32_t chunk) const { return sets[post[chunk]]; }
    // Bytes of the largest, for which plans take all; 1 if there is none.
    std::int64_t largest() const {
        return bytes.empty() ? 1 : *std::max_element(bytes.begin(), bytes.end());
    }
};

// Rows: see `weft.algorithm.Transfers`.
struct Transfers {
    std::span<const std::int32_t> chunk, src, dst;
    std::span<const std::uint8_t> reduce;
    std::span<const std::int32_t> route;
    std::span<const ps> start, end;
    std::span<const std::int32_t> src_place, dst_place;
    std::span<const std::int64_t> dep_offsets, deps;

    std::size_t size() const { return chunk.size(); }
    bool has_deps() const { return !dep_offsets.empty(); }
    std::int32_t reads(std::size_t row) const {
        return src_place.empty() ? chunk[row] : src_place[row];
    }
    std::int32_t writes(std::size_t row) const {
        return dst_place.empty() ? chunk[row] : dst_place[row];
    }
};

// What the times of rows are for.
struct Timing {
    const Network& network;
    CostModel cost;
    RowsView routes;  // the links of each route, from NPU to NPU through switches
};

}  // namespace weft
