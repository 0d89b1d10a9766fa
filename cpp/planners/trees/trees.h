// All-Reduce and Broadcast by many trees at once: chunks go by different trees, chosen so that all
// of them together load the links evenly, and follow each other in a pipeline.
#pragma once

#include "base/hops.h"
#include "base/tables.h"
#include "planners/schedule.h"

namespace weft {

// Plans trees whose links carry not much more than the goal, and schedules them, for chunks that
// all have the same ends and reach: sums, or copies of what one root holds. Time is `never` if some
// end cannot be joined.
Schedule plan_trees(const Network& network, const Hops& hops, const HopTimes& times,
                    const Chunks& chunks, const Search& search);

}  // namespace weft
