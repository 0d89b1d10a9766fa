// Regions: parts of a network between which bandwidth is short. A chunk should enter each once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hops.h"

namespace weft {

struct Regions {
    std::vector<std::int32_t> of;  // per NPU: number of its region, from 0
    std::vector<bool> crossed_by;  // per hop: whether it is for going from one to another

    std::int32_t count() const;
};

// Whether every one of these NPUs reaches every other over hops between them alone.
bool is_joined(const Hops& hops, std::span<const std::int32_t> npus);

// One division for each clear step between link speeds, the coarsest first: NPUs joined by the
// faster hops belong together, and the slower ones are for crossing, even those that end where
// they began. Divisions into one region, or into single NPUs, are left out.
std::vector<Regions> regions_by_speed(const Hops& hops, const HopTimes& times);

// The two sides of the tightest cut, by how many chunks start on each NPU (`supply`) and who must
// get them; none if no cut is tighter than an NPU's own links, which need `known` seconds.
std::vector<Regions> regions_by_cut(const Network& network, const Hops& hops,
                                    const std::vector<double>& supply_bytes,
                                    const std::vector<std::int32_t>& takers, double known);

}  // namespace weft
