// Any mix of chunks at once: copies and sums, of many sizes, each from any NPUs to any NPUs. Every
// chunk goes by a Steiner tree, chosen so that all trees together load the links evenly.
#pragma once

#include <cstdint>
#include <span>

#include "base/hops.h"
#include "base/progress.h"
#include "planners/schedule.h"
#include "planners/steiner/demands.h"

namespace weft {

// `times[s]` are for chunks of the s-th of `sizes`; `bound` is a time to aim at. Time is `never` if
// some chunk has no way to a taker.
Schedule plan_steiner(const Hops& hops, std::span<const HopTimes> times, const Demands& demands,
                      const Sizes& sizes, std::uint64_t seed, ps bound, int threads,
                      Progress& progress);

}  // namespace weft
