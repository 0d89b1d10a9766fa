// ASTRA-sim's analytical networks, to the nanosecond: docs/simulation.md has their rules.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "traces/carrier.h"

namespace weft {

enum class AstraShape : std::uint8_t { ring, fully_connected, switched };

struct AstraDimension {
    AstraShape shape;
    std::int32_t size;
    double bandwidth;  // bytes a nanosecond
    double latency;    // nanoseconds
};

// Rank r of the traces is NPU npus[r]; the first dimension varies fastest. Both throw
// std::invalid_argument from a run in which ASTRA-sim would abort.

// One dimension: each link sends whole messages one after the other, first come first served, and
// each device on the way passes on what it has received whole.
std::unique_ptr<Carrier> astra_aware(const RunGraph& graph, std::vector<std::int32_t> npus,
                                     const AstraDimension& dimension);

// Any number of dimensions: nothing waits, and a message takes the time of the first dimension in
// which its ends differ.
std::unique_ptr<Carrier> astra_unaware(const RunGraph& graph, std::vector<std::int32_t> npus,
                                       std::vector<AstraDimension> dimensions);

}  // namespace weft
