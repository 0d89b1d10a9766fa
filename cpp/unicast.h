// Chunks that each go to one NPU: routed first, with an eye on congestion, then scheduled.
#pragma once

#include <cstdint>
#include <vector>

#include "hops.h"
#include "progress.h"
#include "schedule.h"

namespace weft {

struct Unicast {
    std::vector<std::int32_t> src, dst;  // per chunk; if they are the same nothing moves
};

// Routes every chunk by the cheapest path, where a link gets dearer steeply as its load nears
// `bound`, then lets each link carry the chunk with the longest way to go first. Time is `never`
// if some chunk has no path.
Schedule route_and_schedule(const Hops& hops, const HopTimes& times, const Unicast& unicast,
                            std::uint64_t seed, ps bound, Progress& progress);

}  // namespace weft
