// All-Reduce by trees that are used over and over: a tree carries one chunk after the other, one
// each period, and every link is free for each of its uses at that use's own slot of the period.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/network.h"
#include "planners/schedule.h"

namespace weft {

// What the trees must join, on a network without switches whose links are all alike: a chunk holds
// a link for one slot, and can be sent on `lag` slots after it was sent.
struct PeriodicProblem {
    const Network& network;
    std::span<const std::int32_t> members;
    std::int64_t lag;
    std::int64_t chunks;
};

struct PeriodicTrees {
    std::int32_t period = 0;               // slots between two chunks of a tree
    std::vector<std::int64_t> offsets{0};  // tree t has the rows offsets[t] .. offsets[t + 1] - 1
    std::vector<std::int32_t> link;        // of each row, of a tree's first chunk
    std::vector<std::int64_t> slot;        // likewise; ascending in a tree
    std::vector<std::uint8_t> reduce;      // whether it is a sum on its way to the root
    std::vector<std::int64_t> chunks;      // how many chunks each tree carries
    std::int64_t slots = 0;                // when all have arrived; 0 if there are no trees
};

// The best of several numbers of trees and periods; no trees if some member cannot be joined.
PeriodicTrees plan_periodic(const PeriodicProblem& problem, const Search& search);

}  // namespace weft
