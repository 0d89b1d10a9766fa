// Which tree each chunk goes by: trees of all chunks, routed and re-routed under one price.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hops.h"
#include "base/progress.h"
#include "base/random.h"
#include "planners/steiner/chunk_classes.h"
#include "planners/steiner/growth.h"
#include "planners/steiner/loads.h"

namespace weft {

// The way of some chunks of one class: partial sums go up to the hub, then copies go down from it.
struct SteinerTree {
    std::int32_t chunk_class = -1;
    double chunks = 0;               // how many chunks go by it
    std::int32_t hub = -1;           // where a sum is complete; copies have none
    std::vector<std::int32_t> up;    // hops, from the hub outwards
    std::vector<std::int32_t> down;  // hops, from the hub or the holders outwards
};

class SteinerRouter {
  public:
    SteinerRouter(const Hops& hops, std::span<const HopTimes> times, const Chunks& chunks,
                  const Sizes& sizes, double depth_price, std::uint64_t seed, ps bound,
                  Progress& progress);

    // Grows all trees, in random order; later takes out those over the fullest links and grows them
    // again. False if some chunk has no way, or the work was cancelled.
    bool pass();

    const std::vector<ChunkClass>& classes() const { return classes_; }
    // The tree of a class's k-th chunk.
    const SteinerTree& tree(std::size_t chunk_class, std::size_t k) const {
        const auto first = first_tree_[chunk_class];
        return trees_[first + k % (first_tree_[chunk_class + 1] - first)];
    }
    double busiest() const { return loads_.busiest(); }
    void set_idle(const std::vector<double>& time) { loads_.set_idle(time); }
    std::int64_t looks() const { return grower_.looks(); }

  private:
    void share_trees(std::size_t chunks);
    bool is_crowded(const SteinerTree& tree, double limit) const;
    bool route(SteinerTree& tree);
    std::vector<std::int32_t> ends_within_reach(const ChunkClass& kind) const;
    bool grow(SteinerTree& tree);
    bool grow_sum(SteinerTree& tree);
    bool grow_both_ways(SteinerTree& tree, double& cost);
    void lower_hub(SteinerTree& tree);
    void prune(SteinerTree& tree);
    std::vector<std::int32_t> hubs_to_try(const SteinerTree& tree);
    std::vector<std::int32_t> hubs_left(const ChunkClass& kind) const;
    std::int32_t another_hub(const SteinerTree& tree);
    std::int32_t any_of(std::span<const std::int32_t> set) {
        return set[random_.below(static_cast<std::uint32_t>(set.size()))];
    }
    void put(const SteinerTree& tree, double sign);
    const ChunkClass& of(const SteinerTree& tree) const { return classes_[tree.chunk_class]; }

    const Hops& hops_;
    const Chunks& chunks_;
    Progress& progress_;
    Random random_;
    const double bound_;
    Loads loads_;
    TreeGrower grower_;
    std::vector<ChunkClass> classes_;
    std::vector<std::int32_t> last_hub_;   // per class: of the sum routed last
    std::vector<std::size_t> first_tree_;  // per class, and the end
    std::vector<SteinerTree> trees_;
    std::vector<std::size_t> order_;
    std::vector<bool> needed_;
    const bool is_dense_;
    bool first_pass_ = true;
};

}  // namespace weft
