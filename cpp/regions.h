// Regions: parts of a network between which bandwidth is short. A chunk should enter each once.
#pragma once

#include <cstdint>
#include <vector>

#include "hops.h"

namespace weft {

using Regions = std::vector<std::int32_t>;  // per NPU: number of its region, from 0

// One division for each clear step between link speeds: NPUs joined by the faster hops belong
// together. Divisions into one region, or into single NPUs, are left out.
std::vector<Regions> regions_by_speed(const Hops& hops, const HopTimes& times);

// The two sides of the tightest cut, by how many chunks start on each NPU (`supply`) and who must
// get them; none if no cut is tighter than an NPU's own links, which need `known` seconds.
std::vector<Regions> regions_by_cut(const Network& network, const std::vector<double>& supply_bytes,
                                    const std::vector<std::int32_t>& takers, double known);

}  // namespace weft
