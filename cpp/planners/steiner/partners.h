// Boxes joined by switches: each NPU sends to one in the next box, so that no two hops meet.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hops.h"

namespace weft {

// Which hops to keep: all over direct links, and those through switches from an NPU to its partner,
// in a ring of boxes. NPUs are in one box if direct links join them. All, where there is but one
// box or where an NPU has no direct link.
std::vector<std::int32_t> hops_to_partners(const Hops& hops);

// Some of the hops, with new numbers; and what they cost.
Hops only(const Hops& hops, const std::vector<std::int32_t>& kept);
HopTimes only(const Hops& hops, const HopTimes& times, const std::vector<std::int32_t>& kept);

}  // namespace weft
