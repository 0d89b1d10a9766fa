// What can be said of a link whatever route a hop takes across it: for bounds, which must hold for
// every algorithm and not only for those that use the routes Weft would.
#pragma once

#include <cstdint>
#include <vector>

#include "base/network.h"

namespace weft {

struct HopOverheads {
    // Time a hop takes at the least besides its hold of the link, before it or after it.
    std::vector<ps> once;    // of one hop
    std::vector<ps> across;  // of several, of which the first waits before or the last after: so
                             // k chunks over the link take at least k holds and this once

    // Cut-through: whether a hop may hold the link from its start, or up to its end (see cost.h).
    std::vector<bool> early, late;

    // For a link into an NPU: whether chunks arrive over it no closer than its holds follow each
    // other. Not so where some hop holds it early and another late (see cost.h).
    std::vector<bool> steady;
};

HopOverheads find_hop_overheads(const Network& network, CostModel cost);

// The soonest a chunk of `bytes` that NPU `from` has at 0 can be at each node; `never` where there
// is no way. Backwards: how long from each node to `from`. Without relays, only what a single hop
// does: ways that begin and end in an NPU, or in `from`, and pass switches alone.
std::vector<ps> soonest(const Network& network, CostModel cost, std::int64_t bytes,
                        std::int32_t from, bool backwards, bool relays = true);

}  // namespace weft
