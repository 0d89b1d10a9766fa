// One Steiner tree at a time, grown by the cheapest path to the next NPU it must join.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/hops.h"

namespace weft {

// How full links are with trees of many chunks, and what it costs to load them further. Paths of
// single chunks have `Congestion`, whose costs rise more steeply and count no idle time.
class Loads {
  public:
    // `depth_price`: of each unit of time from the root, where one of a full link costs one.
    Loads(const Hops& hops, std::span<const HopTimes> times, double depth_price)
        : hops_(hops), times_(times), depth_price_(depth_price), load_(hops.bundles.size(), 0),
          idle_(hops.bundles.size(), 0), even_(hops.bundles.size()) {}

    // Links busy for `time` count as full.
    void aim_at(double time) {
        for (std::int32_t b = 0; b < hops_.bundles.size(); ++b) even_[b] = 1 / (time * links(b));
    }
    // How steeply full links get dearer: the sixth power of how full they are, squared so often.
    void steepen(int squarings) { squarings_ = squarings; }
    // For how long each bundle must idle, before what it carries can reach it and after.
    void set_idle(const std::vector<double>& time) {
        for (std::int32_t b = 0; b < hops_.bundles.size(); ++b) idle_[b] = time[b] * links(b);
    }

    // What it costs to send `chunks` of a size over a hop: the time its links are held, steeply
    // more as they get full, and something for the time that passes.
    double price(std::int32_t hop, std::int32_t size, double chunks) const {
        const auto& times = times_[size];
        double sum = depth_price_ * static_cast<double>(times.duration[hop]);
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i) {
            const auto bundle = hops_.steps.items[i];
            const auto held = static_cast<double>(times.holds[i].length);
            const double full = (load_[bundle] + idle_[bundle] + chunks * held) * even_[bundle];
            const double cube = full * full * full;
            double steep = cube * cube;
            for (int i = 0; i < squarings_; ++i) steep *= steep;
            sum += held * (floor_price + steep);
        }
        return sum;
    }

    void put(std::int32_t hop, std::int32_t size, double chunks) {
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i)
            load_[hops_.steps.items[i]] +=
                chunks * static_cast<double>(times_[size].holds[i].length);
    }

    // The time until which a bundle is busy at least.
    double busy(std::int32_t bundle) const {
        return (load_[bundle] + idle_[bundle]) / links(bundle);
    }
    double busiest() const {
        double most = 0;
        for (std::int32_t b = 0; b < hops_.bundles.size(); ++b) most = std::max(most, busy(b));
        return most;
    }
    double depth_price() const { return depth_price_; }

  private:
    static constexpr double floor_price = 0.01;  // of an idle link, so that trees do not wander

    double links(std::int32_t bundle) const {
        return static_cast<double>(hops_.bundles[bundle].size());
    }

    const Hops& hops_;
    std::span<const HopTimes> times_;
    const double depth_price_;
    int squarings_ = 0;
    std::vector<double> load_;  // per bundle: time its links are held in all
    std::vector<double> idle_;  // per bundle: time its links must idle in all
    std::vector<double> even_;  // per bundle: one over the load that counts as full
};

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
    TreeGrower(const Hops& hops, std::span<const HopTimes> times, Loads& loads)
        : hops_(hops), times_(times), loads_(loads), nodes_(hops.out.size()),
          within_(hops.out.size(), false) {}

    // Which NPUs trees may visit from now on; all, if empty.
    void confine(std::span<const std::int32_t> reach) {
        confined_ = !reach.empty();
        if (!confined_) return;
        std::fill(within_.begin(), within_.end(), false);
        for (auto npu : reach) within_[npu] = true;
    }

    // Adds the hops to `tree`, from the root outwards, and their load to the links; `cost` goes up
    // by their price and by the depth of the tree. False if a target cannot be joined.
    // Takahashi and Matsuyama's way, with one search for all targets: NPUs that have joined the
    // tree start again from what their depth costs.
    bool grow(const Growth& growth, std::vector<std::int32_t>& tree, double& cost) {
        ++stamp_;
        queue_.clear();
        missing_ = 0;
        deepest_ = 0;
        for (auto npu : growth.targets) {
            label(npu).wanted = true;
            ++missing_;
        }
        for (auto npu : growth.roots) enter(npu, 0);
        while (missing_ > 0 && !queue_.empty()) {
            const auto [key, npu] = queue_.front();
            std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
            queue_.pop_back();
            auto& node = nodes_[npu];
            if (key != node.key || got_dearer(growth, npu)) continue;
            node.settled = true;
            if (node.wanted)
                join(growth, npu, tree, cost);
            else
                spread(growth, npu);
        }
        cost += deepest_;
        return missing_ == 0;
    }

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

    Node& label(std::int32_t npu) {
        auto& node = nodes_[npu];
        if (node.stamp != stamp_) node = {.key = 1e300, .stamp = stamp_};
        return node;
    }
    void offer(std::int32_t npu, double key, std::int32_t via) {
        auto& node = label(npu);
        if (key >= node.key) return;
        node.key = key;
        node.via = via;
        queue_.push_back({key, npu});
        std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
    }
    void enter(std::int32_t npu, double depth) {
        auto& node = label(npu);
        missing_ -= node.wanted;
        node.wanted = false;
        node.in_tree = true;
        node.depth = depth;
        deepest_ = std::max(deepest_, depth);
        node.key = 1e300;
        offer(npu, depth * loads_.depth_price(), node.via);
    }
    // Where hops share links, a tree's own branches make paths dearer that were offered before.
    // Only an NPU from which no other path has started may be offered again at a higher price: so
    // no path can come to lead through itself.
    bool got_dearer(const Growth& growth, std::int32_t npu) {
        auto& node = nodes_[npu];
        if (hops_.single_links || node.settled || node.in_tree) return false;
        auto key_by = [&](std::int32_t hop) {
            return nodes_[inner(growth, hop)].key + loads_.price(hop, growth.size, growth.chunks);
        };
        double now = key_by(node.via);
        if (now <= node.key) return false;
        auto via = node.via;
        for (auto hop : (growth.inward ? hops_.out : hops_.in)[npu]) {
            const auto& from = nodes_[inner(growth, hop)];
            if (from.stamp != stamp_ || !from.in_tree) continue;
            if (const double key = key_by(hop); key < now) now = key, via = hop;
        }
        node.key = 1e300;
        offer(npu, now, via);
        return true;
    }
    void spread(const Growth& growth, std::int32_t npu) {
        const double key = nodes_[npu].key;
        const auto next = (growth.inward ? hops_.in : hops_.out)[npu];
        looks_ += static_cast<std::int64_t>(next.size());
        for (auto hop : next) {
            const auto to = outer(growth, hop);
            if (confined_ && !within_[to]) continue;
            const auto& node = nodes_[to];
            if (node.stamp == stamp_ && node.key <= key) continue;
            offer(to, key + loads_.price(hop, growth.size, growth.chunks), hop);
        }
    }
    void join(const Growth& growth, std::int32_t npu, std::vector<std::int32_t>& tree,
              double& cost) {
        path_.clear();
        while (!nodes_[npu].in_tree) {
            path_.push_back(nodes_[npu].via);
            npu = inner(growth, nodes_[npu].via);
        }
        double depth = nodes_[npu].depth;
        for (auto hop = path_.rbegin(); hop != path_.rend(); ++hop) {
            cost += loads_.price(*hop, growth.size, growth.chunks);
            loads_.put(*hop, growth.size, growth.chunks);
            depth += static_cast<double>(times_[growth.size].duration[*hop]);
            tree.push_back(*hop);
            enter(outer(growth, *hop), depth);
        }
    }
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
