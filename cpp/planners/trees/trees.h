// All-Reduce and Broadcast by many trees at once: chunks go by different trees, chosen so that all
// of them together load the links evenly, and follow each other in a pipeline.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hops.h"
#include "base/tables.h"
#include "planners/schedule.h"

namespace weft {

// What the trees must join.
struct TreeProblem {
    std::vector<std::int32_t> members;  // NPUs that contribute and take
    std::vector<std::int32_t> reach;    // NPUs that may relay, members included; empty: any
    std::int32_t root;                  // of a Broadcast; -1 for an All-Reduce, where each tree
                                        // chooses its own
    std::int32_t chunks;
};

// Chunks that all have the same ends and reach: sums, or copies of what one root holds.
TreeProblem tree_problem(const Chunks& chunks);

// Plans trees whose links carry not much more than the goal, and schedules them. Time is `never` if
// some member cannot be joined.
Schedule plan_trees(const Hops& hops, const HopTimes& times, const TreeProblem& problem,
                    const Search& search);

}  // namespace weft
