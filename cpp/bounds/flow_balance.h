// Link lengths for the concurrent-flow bound: prices at which flows balance the links.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bounds/flow.h"

namespace weft {

struct Balance {
    std::vector<std::int64_t> lengths;  // the best found, for `shortest_routing`
    std::vector<double> loads;          // of the flow that was balanced: seconds per link
    double seconds = 0;                 // what these lengths prove: total over lengths · capacity
};

// Parts of all flows are shifted to ever cheaper ways while prices rise with the load
// of each link; capacity in bytes per second. Stops when what is proven meets `enough` seconds or
// the flow's own time, when nothing is gained, or when `budget` link visits are spent.
Balance balance(const Network& network, std::span<const double> capacity, const Flows& flows,
                double enough, std::int64_t budget, int threads);

}  // namespace weft
