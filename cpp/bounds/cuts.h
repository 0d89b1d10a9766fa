// The tightest cut: how much must cross it over how much it can carry, by maximum flow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/network.h"

namespace weft {

struct Cut {
    double seconds = 0;        // bytes that must cross over bandwidth that can carry them
    std::vector<bool> inside;  // per node: the side the bytes come from; empty if none was found
};

// The largest, over every sink and every cut that parts it from some supplies, of the supply
// (bytes) inside over the bandwidth leaving it. Starts from `seconds` known to be needed, so
// that most sinks cost one flow; stops when `budget` link visits are spent.
Cut tightest_cut(const Network& network, std::span<const double> supply,
                 std::span<const std::int32_t> sinks, double seconds, std::int64_t budget);

}  // namespace weft
