// Broadcast by trees that share links: as many as the root's tightest cut allows, and shallow.
#pragma once

#include "base/hops.h"
#include "base/tables.h"
#include "planners/schedule.h"

namespace weft {

// Plans chunks that one root holds, with the same takers and reach, each taken for the largest.
// Time is `never` if some taker has no way.
Schedule plan_rooted(const Network& network, CostModel cost, const Hops& hops,
                     const HopTimes& times, const Chunks& chunks, const Search& search);

}  // namespace weft
