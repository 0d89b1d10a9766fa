// Shortest ways under given link lengths, and lengths under which they prove much: what the
// concurrent-flow bound is made of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/network.h"

namespace weft {

// What goes from one node to another: the rows of source s are offsets[s] .. offsets[s + 1] - 1.
struct Flows {
    std::span<const std::int64_t> offsets;  // one per node, and the end
    std::span<const std::int32_t> dst;
    std::span<const std::int64_t> amount;  // bytes or chunks
};

struct Routing {
    double total = 0;           // sum of amount times distance, rounded down
    std::vector<double> loads;  // per link: what crosses it if all goes by shortest ways
};

// Sends all flows by shortest ways under `lengths`, split evenly wherever two are equally short.
// Lengths are whole numbers, not negative and below 2^41, so distances and ties are exact, and the
// result is the same on any number of threads. What has no way is left out.
Routing shortest_routing(const Network& network, std::span<const std::int64_t> lengths,
                         const Flows& flows, int threads);

// Link lengths that are prices at which flows balance the links.
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
