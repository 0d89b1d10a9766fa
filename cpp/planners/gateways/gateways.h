// Gateways: All-Reduce and All-Gather where boxes, or their ways out, are not alike.
//
// Each chunk has an owner, and in every other box one NPU that sums the box's parts for it and one
// that spreads the result. In an All-Gather owners are given, and only results are spread. Or a
// chunk goes in one shot: boxes exchange their sums, and each adds them.
#pragma once

#include <cstdint>
#include <span>

#include "base/hops.h"
#include "base/tables.h"
#include "planners/schedule.h"
#include "planners/sizes.h"

namespace weft {

// `box`: by NPU; -1 for those that do not take part. `reduce` says of each row: whether it is added
// (1), what it reads (2 · place) and what it writes (8 · place). Place 0 is the chunk's home; 1 is
// where what other boxes get is summed, 2 where what the box itself gets is.
Schedule plan_gateways(const Hops& hops, std::span<const HopTimes> times, const Chunks& chunks,
                       const Sizes& sizes, std::span<const std::int32_t> box, bool one_shot,
                       const Search& search);

}  // namespace weft
