// The planner for chunks that each go to one NPU: routed first, since loads decide, then scheduled.
#pragma once

#include "base/tables.h"
#include "planners/schedule.h"
#include "planners/unicast/paths.h"

namespace weft {

// Chunks that each have one holder and one taker, of which sizes alike share slots.
Unicast unicast_of(const Network& network, const Hops& hops, CostModel cost, const Chunks& chunks);

// Time is `never` if some chunk has no way.
Schedule plan_unicast(const Hops& hops, const Unicast& unicast, const Search& search);

}  // namespace weft
