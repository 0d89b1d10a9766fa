// The planner for chunks that each go to one NPU: routed first, since loads decide, then scheduled.
#pragma once

#include <cstdint>

#include "base/progress.h"
#include "planners/schedule.h"
#include "planners/unicast/paths.h"

namespace weft {

// Time is `never` if some chunk has no way. `bound`: no schedule is shorter.
Schedule plan_unicast(const Hops& hops, const Unicast& unicast, std::uint64_t seed, ps bound,
                      int threads, Progress& progress);

}  // namespace weft
