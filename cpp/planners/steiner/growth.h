// One Steiner tree at a time, grown by the cheapest path to the next NPU it must join.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "planners/steiner/loads.h"

namespace weft {

// What one tree must join.
struct Growth {
    std::span<const std::int32_t> roots;    // they have it; a tree may grow from several
    std::span<const std::int32_t> targets;  // to be joined
    bool inward;                            // over hops towards the root: a sum is gathered
    std::int32_t size;                      // of the chunks that will go by the tree
    double chunks;                          // how many
};

class TreeGrower {
  public:
    TreeGrower(const Hops& hops, std::span<const HopTimes> times, Loads& loads);

    // Which NPUs trees may visit from now on; all, if empty.
    void confine(std::span<const std::int32_t> reach);

    // Adds the hops to `tree`, from the root outwards, and their load to the links; `cost` goes up
    // by their price and by the depth of the tree. False if a target cannot be joined.
    bool grow(const Growth& growth, std::vector<std::int32_t>& tree, double& cost);

    // How many hops have been looked at so far.
    std::int64_t looks() const { return looks_; }

  private:
    struct Node {
        double key = 0;           // price of the path from the tree, with what the depth costs
        double depth = 0;         // of an NPU in the tree: time from the root
        std::int32_t via = -1;    // the hop that leads here
        std::uint32_t stamp = 0;  // the growth in which it was labelled
        bool in_tree = false, settled = false, wanted = false;
    };

    Node& label(std::int32_t npu);
    void offer(std::int32_t npu, double key, std::int32_t via);
    void enter(std::int32_t npu, double depth);
    bool got_dearer(const Growth& growth, std::int32_t npu);
    void spread(const Growth& growth, std::int32_t npu);
    void join(const Growth& growth, std::int32_t npu, std::vector<std::int32_t>& tree,
              double& cost);
    std::int32_t inner(const Growth& growth, std::int32_t hop) const {
        return growth.inward ? hops_.dst[hop] : hops_.src[hop];
    }
    std::int32_t outer(const Growth& growth, std::int32_t hop) const {
        return growth.inward ? hops_.src[hop] : hops_.dst[hop];
    }

    const Hops& hops_;
    std::span<const HopTimes> times_;
    Loads& loads_;
    std::vector<Node> nodes_;
    std::uint32_t stamp_ = 0;
    std::size_t missing_ = 0;
    std::int64_t looks_ = 0;
    double deepest_ = 0;
    bool confined_ = false;
    std::vector<bool> within_;
    std::vector<std::int32_t> path_;
    using Offer = std::pair<double, std::int32_t>;
    std::vector<Offer> queue_;  // a heap, the least key on top
};

}  // namespace weft
