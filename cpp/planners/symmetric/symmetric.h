// Plans for vertex-transitive networks: the rows of NPU 0's chunks, which moved by
// every NPU are everybody's. They never collide if no resource carries two rows at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/cost.h"
#include "planners/schedule.h"

namespace weft {

// NPUs on a grid that translates onto itself, and the hops out of each: its directions, in order
// of dimension and step.
struct Directions {
    std::vector<std::int32_t> sizes;      // of the grid, the first varying fastest
    std::vector<std::int32_t> dimension;  // by direction: along which dimension
    std::vector<std::int32_t> step;       // by direction: by how many places, 1 to size - 1
    std::vector<std::int32_t> resource;   // by direction: what it occupies
    std::vector<ps> hold, duration;       // by resource: until it is free, until a chunk is usable
};

// A row of one of NPU 0's chunks; the resource follows from the direction.
struct SymmetricRow {
    std::int32_t chunk;
    std::int32_t src;
    std::int32_t direction;
    ps start;
};

struct SymmetricPlan {
    std::vector<SymmetricRow> rows;  // in order of start
    ps time = never;                 // when the last row ends
};

// Where moves lead, and what is in a line with what.
class Grid {
  public:
    explicit Grid(const Directions& directions);

    std::int32_t npus() const { return npus_; }
    std::int32_t size(std::int32_t dimension) const { return sizes_[dimension]; }

    std::int32_t coordinate(std::int32_t npu, std::int32_t dimension) const {
        return npu / strides_[dimension] % sizes_[dimension];
    }
    std::int32_t moved(std::int32_t npu, std::int32_t dimension, std::int32_t step) const {
        const auto here = coordinate(npu, dimension);
        auto there = here + step;
        if (there >= sizes_[dimension]) there -= sizes_[dimension];
        return npu + (there - here) * strides_[dimension];
    }
    std::int32_t lines(std::int32_t dimension) const { return npus_ / sizes_[dimension]; }
    // Number of the line of a dimension in which an NPU lies.
    std::int32_t line(std::int32_t npu, std::int32_t dimension) const {
        const auto stride = strides_[dimension];
        return npu / (stride * sizes_[dimension]) * stride + npu % stride;
    }

  private:
    std::vector<std::int32_t> sizes_, strides_;
    std::int32_t npus_ = 1;
};

// One tree from NPU 0 to all for each of `pieces` chunks; `chunk` is the piece. Several attempts
// are made, as far as they are cheap, until one takes no longer than the goal.
SymmetricPlan spread_from_one(const Directions& directions, std::int32_t pieces,
                              const Search& search);

// `pieces` chunks from NPU 0 to each NPU v; `chunk` is v * pieces + piece. Likewise.
SymmetricPlan exchange_from_one(const Directions& directions, std::int32_t pieces,
                                const Search& search);

// When rows of `pieces` chunks start if each starts as soon as its chunk is there (all that was
// added to it included) and its resource is free, both in the order of the rows.
std::vector<ps> follow_order(const Directions& directions, std::int32_t pieces,
                             std::span<const std::int32_t> chunk, std::span<const std::int32_t> src,
                             std::span<const std::int32_t> direction);

}  // namespace weft
