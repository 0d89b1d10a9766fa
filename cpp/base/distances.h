// How far NPUs are from one another, in links.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/network.h"

namespace weft {

// Links on the shortest path from `source` to every node, or towards it from every node when
// `reverse`; -1 where there is no path.
std::vector<std::int32_t> distances(const Network& network, std::int32_t source, bool reverse);

struct Reach {
    std::int32_t farthest = 0;  // links on the longest shortest path seen
    std::int64_t sources = 0;   // how many of the sources were searched
};

// The longest shortest path from `sources` to `targets` (NPUs, each reachable from all sources).
// Sources are searched in order until `budget` links have been looked at; at least one is.
Reach longest_path(const Network& network, std::span<const std::int32_t> sources,
                   std::span<const std::int32_t> targets, std::int64_t budget);

}  // namespace weft
