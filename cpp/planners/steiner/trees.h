// Which tree each chunk goes by: trees of all chunks, routed and re-routed under one price.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include "base/hops.h"
#include "base/random.h"
#include "base/tables.h"
#include "planners/schedule.h"
#include "planners/sizes.h"
#include "planners/steiner/growth.h"

namespace weft {

// Chunks with the same ends, reach and size: they can share trees.
struct ChunkClass {
    std::int32_t pre, post, reach, size;
    bool reduce;  // several contribute; what one alone contributes is only copied
    std::vector<std::int32_t> chunks;
};

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
                  const Sizes& sizes, double depth_price, const Search& search)
        : hops_(hops), chunks_(chunks), progress_(search.progress), random_(search.seed),
          bound_(static_cast<double>(std::max<ps>(search.goal, 1))),
          loads_(hops, times, depth_price), grower_(hops, times, loads_),
          classes_(group_chunks(chunks, sizes)), last_hub_(classes_.size(), -1),
          needed_(hops.out.size(), false),
          is_dense_(hops.count() > dense_degree * static_cast<std::int64_t>(hops.out.size())) {
        share_trees(chunks.bytes.size());
        order_.resize(trees_.size());
        std::iota(order_.begin(), order_.end(), std::size_t{0});
    }

    // Grows all trees, in random order; later takes out those over the fullest links and grows them
    // again. False if some chunk has no way, or the work was cancelled.
    bool pass() {
        random_.shuffle(order_);
        const double busiest = loads_.busiest();
        std::size_t placed = 0;
        if (!first_pass_) loads_.aim_at(std::max(bound_, full * busiest));
        for (auto i : order_) {
            if (progress_.cancelled) return false;
            // While links fill up for the first time, full is what an even load would be by now.
            if (first_pass_ && placed % (trees_.size() / 64 + 1) == 0)
                loads_.aim_at(std::max(loads_.busiest(), bound_ * static_cast<double>(placed + 1) /
                                                             static_cast<double>(trees_.size())));
            ++placed;
            if (!first_pass_ && !is_crowded(trees_[i], crowded * busiest)) continue;
            if (!route(trees_[i])) return false;
        }
        first_pass_ = false;
        return true;
    }

    const std::vector<ChunkClass>& classes() const { return classes_; }
    // The tree of a class's k-th chunk.
    const SteinerTree& tree(std::size_t chunk_class, std::size_t k) const {
        const auto first = first_tree_[chunk_class];
        return trees_[first + k % (first_tree_[chunk_class + 1] - first)];
    }
    double busiest() const { return loads_.busiest(); }
    void steepen(int squarings) { loads_.steepen(squarings); }
    void set_idle(const std::vector<double>& time) { loads_.set_idle(time); }
    std::int64_t looks() const { return grower_.looks(); }

  private:
    // Trees times hops in all; where chunks are more than that allows, those alike share trees.
    static constexpr double most_work = 1 << 26;
    static constexpr std::size_t least_trees = 32;  // of a class, if it has as many chunks
    // For each sum whose hub is free: in the first pass, and later besides the hub it has.
    static constexpr int hubs_tried = 3, hubs_tried_later = 1;
    // Where an NPU has more hops than this, to all others by way of switches, relays gain little
    // and take long to consider: they are used only where there is no other way.
    static constexpr std::int64_t dense_degree = 100;
    // What counts as full, over the time of the busiest link: a little less, so that it is too
    // full. Trees with a link busier than `crowded` of that time are grown again.
    static constexpr double full = 0.95, crowded = 0.9;

    // In order of their first chunks.
    static std::vector<ChunkClass> group_chunks(const Chunks& chunks, const Sizes& sizes) {
        std::vector<ChunkClass> classes;
        std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, bool>,
                 std::size_t>
            numbers;
        for (std::int32_t chunk = 0; chunk < chunks.size(); ++chunk) {
            const auto pre = chunks.pre[chunk], post = chunks.post[chunk];
            const auto reach = chunks.reach[chunk], size = sizes.of_chunk[chunk];
            const bool reduce = chunks.reduce[chunk] && chunks.sets[pre].size() > 1;
            const auto [found, is_new] =
                numbers.try_emplace({pre, post, reach, size, reduce}, classes.size());
            if (is_new) classes.push_back({pre, post, reach, size, reduce, {}});
            classes[found->second].chunks.push_back(chunk);
        }
        return classes;
    }
    void share_trees(std::size_t chunks) {
        const double share = most_work / (static_cast<double>(chunks) * hops_.count() + 1);
        for (std::size_t c = 0; c < classes_.size(); ++c) {
            first_tree_.push_back(trees_.size());
            const auto count = classes_[c].chunks.size();
            const auto wanted = share * static_cast<double>(count);
            const auto trees =
                wanted < static_cast<double>(count)
                    ? std::min(count, std::max(least_trees, static_cast<std::size_t>(wanted)))
                    : count;
            for (std::size_t k = 0; k < trees; ++k) {
                const auto carried = count / trees + (k < count % trees);
                trees_.push_back({.chunk_class = static_cast<std::int32_t>(c),
                                  .chunks = static_cast<double>(carried),
                                  .up = {},
                                  .down = {}});
            }
        }
        first_tree_.push_back(trees_.size());
    }
    bool is_crowded(const SteinerTree& tree, double limit) const {
        for (const auto* hops : {&tree.up, &tree.down})
            for (auto hop : *hops)
                for (auto bundle : hops_.steps[hop])
                    if (loads_.busy(bundle) > limit) return true;
        return false;
    }
    bool route(SteinerTree& tree) {
        const auto& kind = of(tree);
        put(tree, -1);
        if (is_dense_) {
            grower_.confine(ends_within_reach(kind));
            if (grow(tree)) return true;
        }
        grower_.confine(kind.reach < 0 ? std::span<const std::int32_t>()
                                       : chunks_.sets[kind.reach]);
        return grow(tree);
    }
    std::vector<std::int32_t> ends_within_reach(const ChunkClass& kind) const {
        std::vector<std::int32_t> ends, result;
        std::ranges::set_union(chunks_.sets[kind.pre], chunks_.sets[kind.post],
                               std::back_inserter(ends));
        if (kind.reach < 0) return ends;
        std::ranges::set_intersection(ends, chunks_.sets[kind.reach], std::back_inserter(result));
        return result;
    }
    // Puts a new tree in the place of one whose load has been taken out.
    bool grow(SteinerTree& tree) {
        const auto& kind = of(tree);
        if (kind.reduce && !chunks_.sets[kind.post].empty()) return grow_sum(tree);
        tree.down.clear();
        double cost = 0;
        if (grower_.grow(
                {chunks_.sets[kind.pre], chunks_.sets[kind.post], false, kind.size, tree.chunks},
                tree.down, cost))
            return true;
        put(tree, -1);
        return false;
    }
    bool grow_sum(SteinerTree& tree) {
        SteinerTree best;
        double least = 1e300;
        auto try_hub = [&](std::int32_t hub) {
            SteinerTree next{tree.chunk_class, tree.chunks, hub, {}, {}};
            double cost = 0;
            const bool joined = grow_both_ways(next, cost);
            put(next, -1);
            if (joined && cost < least) least = cost, best = std::move(next);
        };
        for (auto hub : hubs_to_try(tree)) try_hub(hub);
        // Where links are one-way, only few NPUs may do.
        for (auto hub : hubs_left(of(tree)))
            if (least == 1e300) try_hub(hub);
        if (least == 1e300) return false;
        tree = std::move(best);
        put(tree, +1);
        last_hub_[tree.chunk_class] = tree.hub;
        return true;
    }
    bool grow_both_ways(SteinerTree& tree, double& cost) {
        const auto& kind = of(tree);
        const std::span hub(&tree.hub, 1);
        if (!grower_.grow({hub, chunks_.sets[kind.post], false, kind.size, tree.chunks}, tree.down,
                          cost))
            return false;
        if (!grower_.grow({hub, chunks_.sets[kind.pre], true, kind.size, tree.chunks}, tree.up,
                          cost))
            return false;
        lower_hub(tree);
        return true;
    }
    // A sum is complete where the last branches meet: from there on it is copied. The judge wants
    // to see it so, and takers on the way need no second copy.
    void lower_hub(SteinerTree& tree) {
        const auto contributors = chunks_.sets[of(tree).pre];
        const auto first_hub = tree.hub;
        while (!std::binary_search(contributors.begin(), contributors.end(), tree.hub)) {
            const auto is_last = [&](std::int32_t hop) { return hops_.dst[hop] == tree.hub; };
            if (std::count_if(tree.up.begin(), tree.up.end(), is_last) != 1) break;
            const auto last = tree.up.front();
            tree.up.erase(tree.up.begin());
            tree.hub = hops_.src[last];
            std::erase_if(tree.down, [&](std::int32_t hop) {
                if (hops_.dst[hop] != tree.hub) return false;
                loads_.put(hop, of(tree).size, -tree.chunks);
                return true;
            });
            tree.down.insert(tree.down.begin(), last);
        }
        if (tree.hub != first_hub) prune(tree);
    }
    // Drops copies that no taker needs.
    void prune(SteinerTree& tree) {
        std::fill(needed_.begin(), needed_.end(), false);
        for (auto npu : chunks_.sets[of(tree).post]) needed_[npu] = true;
        std::vector<std::int32_t> kept;
        for (auto hop = tree.down.rbegin(); hop != tree.down.rend(); ++hop)
            if (needed_[hops_.dst[*hop]]) {
                needed_[hops_.src[*hop]] = true;
                kept.push_back(*hop);
            } else {
                loads_.put(*hop, of(tree).size, -tree.chunks);
            }
        tree.down.assign(kept.rbegin(), kept.rend());
    }
    // A sum for one taker goes up to it. A sum for many may be completed anywhere.
    std::vector<std::int32_t> hubs_to_try(const SteinerTree& tree) {
        const auto takers = chunks_.sets[of(tree).post];
        if (takers.size() == 1) return {takers[0]};
        std::vector<std::int32_t> hubs;
        if (tree.hub >= 0) hubs.push_back(tree.hub);
        for (int i = 0; i < (tree.hub < 0 ? hubs_tried : hubs_tried_later); ++i)
            hubs.push_back(another_hub(tree));
        return hubs;
    }
    // All there are, the one that served the class last before others.
    std::vector<std::int32_t> hubs_left(const ChunkClass& kind) const {
        const auto takers = chunks_.sets[kind.post];
        if (takers.size() == 1) return {};
        std::vector<std::int32_t> hubs;
        const auto last = last_hub_[&kind - classes_.data()];
        if (last >= 0) hubs.push_back(last);
        if (kind.reach >= 0) {
            const auto reach = chunks_.sets[kind.reach];
            hubs.insert(hubs.end(), reach.begin(), reach.end());
        } else {
            for (std::int32_t npu = 0; npu < hops_.out.size(); ++npu) hubs.push_back(npu);
        }
        return hubs;
    }
    // A contributor, a taker, or an NPU that the tree has passed so far.
    std::int32_t another_hub(const SteinerTree& tree) {
        const auto choice = random_.below(tree.up.empty() ? 2 : 3);
        if (choice == 2) return hops_.dst[any_of(tree.up)];
        return any_of(chunks_.sets[choice == 0 ? of(tree).pre : of(tree).post]);
    }
    std::int32_t any_of(std::span<const std::int32_t> set) {
        return set[random_.below(static_cast<std::uint32_t>(set.size()))];
    }
    void put(const SteinerTree& tree, double sign) {
        for (const auto* hops : {&tree.up, &tree.down})
            for (auto hop : *hops) loads_.put(hop, of(tree).size, sign * tree.chunks);
    }
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
