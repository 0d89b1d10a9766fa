// MultiTree: a spanning tree for every root, all grown at once, slot by slot, so that no link is
// asked for twice in a slot (Huang et al., ISCA 2021).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/tables.h"

namespace weft {

// The edges of all trees, in order of slot; within a slot in the order in which they were found.
struct GrownTrees {
    std::vector<std::int32_t> tree, src, dst, slot;
    std::int32_t lost = -1;  // the first tree that cannot reach all; then there are no edges
};

// Tree t has its root at group[t] and reaches all NPUs of `group`, through NPUs that may hold the
// `chunks`, whose reach is the same; branches without an NPU of the group are cut off. In every
// slot the trees take turns: each adds one edge, from the first of its NPUs that was there before
// the slot to an NPU that is new to it, if the links of that hop are free in this slot. A hop is
// the one that forwarding takes between the two NPUs.
GrownTrees grow_trees(const Network& network, CostModel cost, const Chunks& chunks,
                      std::span<const std::int32_t> group);

}  // namespace weft
