// Hops: how a chunk gets from one NPU to the next, over one link or through switches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/cost.h"
#include "base/network.h"

namespace weft {

// A hop crosses bundles; a bundle is a set of parallel links alike in everything, of which any
// free one will do. On a network without switches hop, bundle and link have the same number.
struct Hops {
    std::vector<std::int32_t> src, dst;  // the two NPUs of each hop
    Rows steps;                          // the bundles each hop crosses, in order
    Rows bundles;                        // the links of each bundle
    Rows out, in;                        // hops by source NPU, by destination NPU
    bool single_links = true;            // every hop is one link, with the link's number
    std::vector<bool> copied;            // by bundle: it ends in a switch that copies
    bool multicast = false;              // some does

    std::int32_t count() const { return static_cast<std::int32_t>(src.size()); }
};

// All direct links, and for each pair of NPUs the shortest ways through switches, in order of
// switch numbers: at most 16, and fewer on large networks. With store-and-forward, switches whose
// buffer is smaller than a chunk of `bytes` are no way.
Hops find_hops(const Network& network, CostModel cost, std::int64_t bytes);

// Whether there is a hop through switches from every NPU to every other, as behind a single one.
bool everyone_meets(const Hops& hops);

// What each hop costs for chunks of one size.
struct HopTimes {
    std::vector<ps> duration;  // per hop: from its start until the chunk can be used
    std::vector<Hold> holds;   // parallel to Hops::steps.items
};

HopTimes time_hops(const Network& network, const Hops& hops, CostModel cost, std::int64_t bytes);

}  // namespace weft
