// Weft's own networks as the carrier of a run of traces, in picoseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/network.h"
#include "traces/carrier.h"

namespace weft {

// Rank r of the traces is NPU npus[r]. A message takes the fixed path of cpp/forwarding.h, and each
// NPU on it passes on what it has received whole. A hop is booked when its message has come to its
// source: for the first time at which all its links are free when it needs them.
//
// Throws std::invalid_argument if the ends of a message have no way to each other.
std::unique_ptr<Carrier> network_carrier(const RunGraph& graph, std::vector<std::int32_t> npus,
                                         const Network& network, CostModel cost);

}  // namespace weft
