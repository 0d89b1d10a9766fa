// Packing: spanning trees that share the links of a network evenly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <span>
#include <vector>

#include "base/hops.h"
#include "base/random.h"
#include "planners/schedule.h"

namespace weft {

// What the trees must join.
struct TreeProblem {
    std::vector<std::int32_t> members;    // NPUs that contribute and take
    std::span<const std::int32_t> reach;  // NPUs that may relay, members included; empty: any
    std::int32_t root;                    // of a Broadcast; -1 for an All-Reduce, where each tree
                                          // chooses its own
    std::int32_t chunks;
};

// One tree each way over the same root; hops in the order they joined, from the root outwards.
struct Tree {
    std::vector<std::int32_t> up;    // towards the root: contributions; empty in a Broadcast
    std::vector<std::int32_t> down;  // away from the root: the result
};

class TreePacker {
  public:
    TreePacker(const Hops& hops, const HopTimes& times, const TreeProblem& problem, ps bound,
               std::uint64_t seed)
        : hops_(hops), times_(times), problem_(problem),
          bound_(static_cast<double>(std::max<ps>(bound, 1))), random_(seed),
          held_(hops.bundles.size(), 0), load_(hops.bundles.size(), 0),
          price_(hops.bundles.size(), 0), is_member_(hops.out.size(), false),
          in_tree_(hops.out.size(), false), depth_(hops.out.size(), 0) {
        for (auto npu : problem.members) is_member_[npu] = true;
        for (std::size_t i = 0; i < times.holds.size(); ++i)
            held_[hops.steps.items[i]] = static_cast<double>(times.holds[i].length);
        quickest_ = static_cast<double>(
            std::max<ps>(1, *std::min_element(times.duration.begin(), times.duration.end())));
    }

    // `count` trees, among which the chunks are divided evenly; none if some member cannot be
    // joined.
    std::vector<Tree> pack(std::int32_t count) {
        std::vector<Tree> trees(count);
        chunks_per_tree_ = static_cast<double>(problem_.chunks) / count;
        for (std::int32_t i = 0; i < count; ++i) {
            expected_ = bound_ * (i + 1) / count;
            for (std::int32_t b = 0; b < hops_.bundles.size(); ++b) set_price(b);
            trees[i] = choose_tree();
            if (trees[i].down.empty()) return {};
            put(trees[i].up, +1);
            put(trees[i].down, +1);
        }
        return trees;
    }

  private:
    static constexpr int roots_tried = 2;        // for each tree whose root is free
    static constexpr double floor_price = 0.01;  // of an idle link, so that trees do not wander
    // Of each hop of depth: shallow trees fill the pipeline soon.
    static constexpr double depth_price = 0.1;

    Tree choose_tree() {
        Tree best;
        double least = 1e300;
        for (int k = 0; k < (problem_.root < 0 ? roots_tried : 1); ++k) {
            const auto members = static_cast<std::uint32_t>(problem_.members.size());
            const auto root =
                problem_.root < 0 ? problem_.members[random_.below(members)] : problem_.root;
            Tree tree;
            double cost = 0;
            if (!grow(root, false, tree.down, cost)) return {};
            put(tree.down, +1);
            const bool joined = problem_.root >= 0 || grow(root, true, tree.up, cost);
            put(tree.down, -1);
            if (!joined) return {};
            if (cost < least) least = cost, best = std::move(tree);
        }
        return best;
    }
    // Prim's way: the cheapest hop that joins another NPU, until all members are in. Prices rise as
    // the tree itself loads a port, so a switch's port is not taken for every branch.
    bool grow(std::int32_t root, bool inward, std::vector<std::int32_t>& tree, double& cost) {
        const auto& next = inward ? hops_.in : hops_.out;
        const auto& inner = inward ? hops_.dst : hops_.src;
        const auto& outer = inward ? hops_.src : hops_.dst;
        using Offer = std::pair<double, std::int32_t>;
        std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
        auto key = [&](std::int32_t hop) { return price(hop) + depth_price * depth_[inner[hop]]; };
        auto open = [&](std::int32_t npu) {
            in_tree_[npu] = true;
            for (auto hop : next[npu])
                if (!in_tree_[outer[hop]]) offers.push({key(hop), hop});
        };
        std::fill(in_tree_.begin(), in_tree_.end(), false);
        depth_[root] = 0;
        open(root);
        std::vector<double> prices;
        std::size_t missing = problem_.members.size() - 1;
        while (missing > 0 && !offers.empty()) {
            const auto [offered, hop] = offers.top();
            offers.pop();
            const auto npu = outer[hop];
            if (in_tree_[npu]) continue;
            if (const double now = key(hop); now > offered) {
                offers.push({now, hop});
                continue;
            }
            prices.push_back(price(hop));
            put_hop(hop, +1);
            tree.push_back(hop);
            depth_[npu] =
                depth_[inner[hop]] + static_cast<double>(times_.duration[hop]) / quickest_;
            missing -= is_member_[npu];
            open(npu);
        }
        put(tree, -1);
        cost += prune(inner, outer, tree, prices);
        return missing == 0;
    }
    // Drops branches that lead to relays only; returns the price of the rest.
    double prune(const std::vector<std::int32_t>& inner, const std::vector<std::int32_t>& outer,
                 std::vector<std::int32_t>& tree, const std::vector<double>& prices) {
        std::vector<bool> needed(is_member_);
        std::vector<std::int32_t> kept;
        double cost = 0;
        for (std::size_t i = tree.size(); i-- > 0;) {
            if (!needed[outer[tree[i]]]) continue;
            needed[inner[tree[i]]] = true;
            kept.push_back(tree[i]);
            cost += prices[i];
        }
        tree.assign(kept.rbegin(), kept.rend());
        return cost;
    }
    void put(const std::vector<std::int32_t>& tree, int sign) {
        for (auto hop : tree) put_hop(hop, sign);
    }
    void put_hop(std::int32_t hop, int sign) {
        for (auto bundle : hops_.steps[hop]) {
            load_[bundle] += sign * chunks_per_tree_ * held_[bundle];
            set_price(bundle);
        }
    }
    // Steep in the load relative to what an even load would be.
    void set_price(std::int32_t bundle) {
        const auto links = static_cast<double>(hops_.bundles[bundle].size());
        const double full =
            (load_[bundle] + chunks_per_tree_ * held_[bundle]) / (expected_ * links);
        const double cube = full * full * full;
        price_[bundle] = held_[bundle] / quickest_ * (floor_price + cube * cube);
    }
    double price(std::int32_t hop) const {
        double sum = 0;
        for (auto bundle : hops_.steps[hop]) sum += price_[bundle];
        return sum;
    }

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
