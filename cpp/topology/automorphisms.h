// Automorphisms of a coloured graph: permutations of its nodes that keep colours and links.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft {

// Directed links with kinds, each of (src, dst, kind) at most once.
struct ColouredGraph {
    std::span<const std::int32_t> colour;  // of each node
    std::span<const std::int32_t> src, dst, kind;
};

struct Automorphisms {
    bool transitive = false;           // whether they move the first member to all others
    std::vector<std::int32_t> images;  // of all nodes, one automorphism after the other
};

// Looks for automorphisms that together move the first of some nodes to each of the others. Gives
// up after `budget` steps of work: what is not found may exist.
Automorphisms find_automorphisms(const ColouredGraph& graph, std::span<const std::int32_t> members,
                                 std::int64_t budget);

}  // namespace weft
