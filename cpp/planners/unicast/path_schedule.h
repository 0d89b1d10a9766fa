// Times for chunks whose paths are decided: whenever links are free, a chunk that waits takes them.
#pragma once

#include <cstdint>

#include "base/progress.h"
#include "planners/schedule.h"
#include "planners/unicast/paths.h"

namespace weft {

// Which chunk goes first. A chunk with a long way to go must leave early: its rank is its way's
// part of the longest one, times `urgency`. On top comes something random, up to `freedom` of the
// whole, so that all links get work from the beginning.
struct Precedence {
    double urgency, freedom;
};

// `load`: how long the busiest link is held.
Schedule schedule_paths(const Hops& hops, const Unicast& unicast, const Paths& paths, ps load,
                        Precedence precedence, std::uint64_t seed, Progress& progress);

}  // namespace weft
