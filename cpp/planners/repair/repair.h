// What is still missing after a plan: brought over links that are free from some time on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/network.h"
#include "base/progress.h"

namespace weft {

struct Completion {
    std::vector<std::int32_t> chunk, link;
    std::vector<ps> start;
};

// `missing` are the chunks that each NPU still lacks, ascending; it has all others. Every link
// brings one missing chunk after the other from `begin` on, as soon as it is free and its source
// has one. A chunk holds a link for `hold` and is there after `duration`, both by link. The network
// has no switches. In order of start; chunks that have no way are left out.
Completion complete(const Network& network, RowsView missing, std::span<const ps> hold,
                    std::span<const ps> duration, ps begin, Progress& progress);

}  // namespace weft
