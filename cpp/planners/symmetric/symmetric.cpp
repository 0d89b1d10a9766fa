#include "planners/symmetric/symmetric.h"

#include <algorithm>
#include <cstddef>

namespace weft {

Grid::Grid(const Directions& directions) : sizes_(directions.sizes) {
    for (auto size : sizes_) {
        strides_.push_back(npus_);
        npus_ *= size;
    }
}

std::vector<ps> follow_order(const Directions& directions, std::int32_t pieces,
                             std::span<const std::int32_t> chunk, std::span<const std::int32_t> src,
                             std::span<const std::int32_t> direction) {
    const Grid grid(directions);
    std::vector<ps> start(chunk.size()), free(directions.hold.size());
    std::vector<ps> ready(static_cast<std::size_t>(grid.npus()) * pieces);
    const auto place = [&](std::int32_t piece, std::int32_t npu) -> ps& {
        return ready[static_cast<std::size_t>(piece) * grid.npus() + npu];
    };
    for (std::size_t i = 0; i < start.size(); ++i) {
        const auto way = direction[i], resource = directions.resource[way];
        const auto dst = grid.moved(src[i], directions.dimension[way], directions.step[way]);
        start[i] = std::max(free[resource], place(chunk[i], src[i]));
        free[resource] = start[i] + directions.hold[resource];
        auto& there = place(chunk[i], dst);
        there = std::max(there, start[i] + directions.duration[resource]);
    }
    return start;
}

}  // namespace weft
