// Packing: spanning trees that share the links of a network evenly.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hops.h"
#include "base/random.h"
#include "planners/trees/trees.h"

namespace weft {

// One tree each way over the same root; hops in the order they joined, from the root outwards.
struct Tree {
    std::vector<std::int32_t> up;    // towards the root: contributions; empty in a Broadcast
    std::vector<std::int32_t> down;  // away from the root: the result
};

class TreePacker {
  public:
    TreePacker(const Hops& hops, const HopTimes& times, const TreeProblem& problem, ps bound,
               std::uint64_t seed);

    // `count` trees, among which the chunks are divided evenly; none if some member cannot be
    // joined.
    std::vector<Tree> pack(std::int32_t count);

  private:
    Tree choose_tree();
    bool grow(std::int32_t root, bool inward, std::vector<std::int32_t>& tree, double& cost);
    double prune(const std::vector<std::int32_t>& inner, const std::vector<std::int32_t>& outer,
                 std::vector<std::int32_t>& tree, const std::vector<double>& prices);
    void put(const std::vector<std::int32_t>& tree, int sign);
    void put_hop(std::int32_t hop, int sign);
    void set_price(std::int32_t bundle);
    double price(std::int32_t hop) const;

    const Hops& hops_;
    const HopTimes& times_;
    const TreeProblem& problem_;
    const double bound_;
    Random random_;
    std::vector<double> held_;   // per bundle: time one chunk holds one of its links
    std::vector<double> load_;   // per bundle: time its links are held in all
    std::vector<double> price_;  // per bundle, under the present load
    std::vector<bool> is_member_, in_tree_;
    std::vector<double> depth_;
    double quickest_;      // the shortest hop, the unit of depth and price
    double expected_ = 1;  // the load of a link if all were loaded alike
    double chunks_per_tree_ = 1;
};

}  // namespace weft
