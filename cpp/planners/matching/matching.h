// Link-chunk matching on the time-expanded network, greedy and event by event.
//
// Every NPU wants every chunk; when a hop is free, a chunk that its source has and its destination
// has not been promised is matched with it. Relays come for free: what nobody needed is pruned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/hops.h"
#include "base/progress.h"
#include "base/tables.h"
#include "planners/schedule.h"

namespace weft {

// Parts of a network between which bandwidth is short. A chunk should enter each once.
struct Regions {
    std::vector<std::int32_t> of;  // per NPU: number of its region, from 0
    std::vector<bool> crossed_by;  // per hop: whether it is for going from one to another

    std::int32_t count() const { return 1 + *std::max_element(of.begin(), of.end()); }
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

// Returns a schedule without rows when cancelled.
Schedule match(const Hops& hops, const HopTimes& times, const Chunks& chunks,
               const MatchOptions& options, Progress& progress);

// Runs the matching for the largest chunk. While the best is not close to the goal, tries regions
// between which bandwidth is short, and on networks with links of different speeds a sweep of
// deadline targets between the goal and the best time so far. Keeps the best, the first of equals:
// the result does not depend on the number of threads.
Schedule search_matching(const Network& network, const Hops& hops, const HopTimes& times,
                         const Chunks& chunks, const Search& search);

}  // namespace weft
