// Direct: every message goes from its holder to its taker by one fixed shortest path, whatever else
// is on the way. The classical algorithm that others are measured against.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "network.h"

namespace weft {

// One message a chunk and taker; in order of number where they are equal otherwise.
struct Messages {
    std::span<const std::int32_t> holders;  // number of the set of NPUs it can be had from
    std::span<const std::int32_t> taker;
    std::span<const std::int32_t> reach;  // number of the set of NPUs that may relay it; -1: any
    std::span<const std::int64_t> bytes;
    const Rows& sets;  // of NPUs, each ascending

    std::int32_t count() const { return static_cast<std::int32_t>(taker.size()); }
};

// Rows in order of start.
struct DirectRows {
    std::vector<std::int32_t> message{}, src{}, dst{}, route{};
    std::vector<ps> start{}, end{};
    Rows routes{};           // the links of each route; empty on a network without switches
    std::int32_t lost = -1;  // the first message that has no path; then there are no rows
};

// The path has the fewest hops from NPU to NPU, from the nearest holder (the lowest of them). Of
// hops equally good the one whose first link has the lowest number is taken: on meshes, tori and
// products that is the first dimension first. Of parallel links alike, hops get one each in turn.
//
// A hop is booked when its message arrives at its source, for the first time at which all its
// links are free when it needs them: each link serves first come first, and gaps that it cannot
// avoid while it waits for another link are left to later comers.
DirectRows send_direct(const Network& network, CostModel cost, const Messages& messages);

}  // namespace weft
