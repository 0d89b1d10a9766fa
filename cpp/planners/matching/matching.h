// Link-chunk matching on the time-expanded network, greedy and event by event.
//
// Every NPU wants every chunk; when a hop is free, a chunk that its source has and its destination
// has not been promised is matched with it. Relays come for free: what nobody needed is pruned.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/hops.h"
#include "base/progress.h"
#include "planners/matching/regions.h"
#include "planners/schedule.h"

namespace weft {

// What must be spread: each chunk from its holders to its takers.
struct Spread {
    Rows holders;                      // NPUs that have each chunk at the start
    std::vector<std::int32_t> takers;  // per chunk: number of a set of NPUs that must get it
    std::vector<std::int32_t> reach;   // per chunk: number of the set of NPUs it may visit; -1: any
    Rows sets;
    std::int32_t chunks() const { return holders.size(); }
};

struct MatchOptions {
    std::uint64_t seed = 0;
    bool rotate = false;                  // try destinations in turn instead of at random
    bool shuffle = false;                 // try hops in random order instead of that of waking
    bool alone = false;                   // keep chunks to those who need them: see search.cpp
    bool patient = false;                 // hold links until the chunk has arrived: see search.cpp
    std::vector<const Regions*> regions;  // send each chunk into a region once before again; the
                                          // coarsest division first
    bool strict = false;                  // do not send it into a region again
    ps target = never;                    // deadline guard: see matching.cpp
    ps limit = never;                     // give up when this time is passed
};

bool is_one_speed(const HopTimes& times);

// Returns a schedule without rows when cancelled.
Schedule match(const Hops& hops, const HopTimes& times, const Spread& spread,
               const MatchOptions& options, Progress& progress);

// Runs the matching. While the best is not close to `bound`, tries regions between which
// bandwidth is short, and on networks with links of different speeds a sweep of deadline targets
// between `bound` and the best time so far. Keeps the best, the first of equals: the result does
// not depend on the number of threads.
Schedule search(const Network& network, const Hops& hops, const HopTimes& times,
                const Spread& spread, std::int64_t bytes, std::uint64_t seed, ps bound, int threads,
                Progress& progress);

}  // namespace weft
