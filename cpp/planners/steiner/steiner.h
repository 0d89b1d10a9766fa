// Any mix of chunks at once: copies and sums, of many sizes, each from any NPUs to any NPUs. Every
// chunk goes by a Steiner tree, chosen so that all trees together load the links evenly.
#pragma once

#include <span>

#include "base/hops.h"
#include "base/tables.h"
#include "planners/schedule.h"
#include "planners/sizes.h"

namespace weft {

// `times[s]` are for chunks of the s-th of `sizes`. Time is `never` if
// some chunk has no way to a taker.
Schedule plan_steiner(const Hops& hops, std::span<const HopTimes> times, const Chunks& chunks,
                      const Sizes& sizes, const Search& search);

// Chunks that are only copied, all taken for the largest, by trees that load links as evenly as can
// be, however deep they get: for many chunks.
Schedule plan_steady(const Network& network, const Hops& hops, const HopTimes& times,
                     const Chunks& chunks, const Search& search);

}  // namespace weft
