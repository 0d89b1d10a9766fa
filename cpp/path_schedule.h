// Times for chunks whose paths are decided: whenever links are free, a chunk that waits takes them.
#pragma once

#include <cstdint>

#include "paths.h"
#include "progress.h"
#include "schedule.h"

namespace weft {

// Which chunk goes first. Chunks are given random times at which they should leave, spread over the
// whole, so that all links get work from the beginning. A chunk with a long way to go must leave
// early: with the longest way, before the part 1 - `urgency` of the whole is over.
struct Precedence {
    double urgency;
    std::uint64_t seed;
};

// `load`: how long the busiest link is held.
Schedule schedule_paths(const Hops& hops, const Unicast& unicast, const Paths& paths,
                        ps load, Precedence precedence, Progress& progress);

}  // namespace weft
