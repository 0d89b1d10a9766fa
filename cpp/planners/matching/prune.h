// After a flood: what nobody needed is dropped.
#pragma once

#include "base/hops.h"
#include "planners/matching/matching.h"
#include "planners/schedule.h"

namespace weft {

// Walks backwards and drops the sends that no taker needs, directly or through another send, those
// still on their way at the end included.
void prune(const Hops& hops, const Chunks& chunks, Schedule& schedule);

}  // namespace weft
