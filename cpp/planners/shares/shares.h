// Shares: chunks that go by trees which are chosen already, over hops with given routes; what is
// left is when each transfer starts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hops.h"
#include "planners/schedule.h"
#include "planners/sizes.h"

namespace weft {

// Hops over one way each, whose links are `routes`. Of those in one lane, such as those that leave
// a box by one link, only some messages are in line at a time.
struct GivenHops {
    RowsView routes;
    std::span<const std::int32_t> src, dst, lane;
};

Hops routed_hops(const Network& network, const GivenHops& given);

// The hops of each chunk's tree, from the root outwards: partial sums go up, copies down. `turn`:
// of each of these hops; of what waits for a link the lowest goes first.
struct GivenTrees {
    RowsView up, down;
    std::span<const std::int32_t> up_turn, down_turn;
};

Schedule plan_shares(const Hops& hops, std::span<const HopTimes> times, const Sizes& sizes,
                     std::span<const std::int32_t> lane, const GivenTrees& trees,
                     const Search& search);

}  // namespace weft
