// Exact times for transfers whose order is known: each starts as soon as it may.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "network.h"

namespace weft {

// Transfers in order: no row waits for a later one.
struct Rowset {
    std::span<const std::int32_t> chunk, src, dst, route;
};

struct Times {
    std::vector<ps> start, end;
};

// Each row starts when what it reads has arrived (all earlier rows that bring its chunk to its
// source) and its links are free, in gaps that earlier rows left or after them. Where every route
// is one link and no chunk is longer than planned, no row is later than planned.
Times retime(const Network& network, const Rows& routes, CostModel cost, const Rowset& rows,
             std::span<const std::int64_t> chunk_bytes);

}  // namespace weft
