// Room: whether trees from one root, each in part grown, can still all be completed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hops.h"

namespace weft {

// Edmonds' condition for trees that share arcs of whole capacities: into every set of nodes there
// must lead as many free arcs as there are trees with no node in it. It is enough at first, and a
// hop may join a tree if it stays so. Where hops pass switches it is only necessary.
class Room {
  public:
    static constexpr int most_trees = 64;  // a bit each

    Room(const Network& network, const Hops& hops)
        : hops_(hops), out_(nodes_of(network, hops, false)), in_(nodes_of(network, hops, true)),
          trees_(network.nodes()), via_(network.nodes()), flow_(hops.bundles.size()) {
        for (std::int32_t b = 0; b < hops.bundles.size(); ++b) {
            from_.push_back(network.src[hops.bundles[b][0]]);
            to_.push_back(network.dst[hops.bundles[b][0]]);
        }
    }

    // Begins anew: so many trees that have only the root, and so much room on each bundle.
    void reset(std::int32_t root, int trees, std::vector<std::int32_t> capacity) {
        all_ = trees == most_trees ? ~Mask{0} : (Mask{1} << trees) - 1;
        left_ = std::move(capacity);
        std::ranges::fill(trees_, Mask{0});
        trees_[root] = all_;
    }

    // Nodes looked at so far.
    std::int64_t work() const { return work_; }

    bool has(int tree, std::int32_t node) const { return trees_[node] >> tree & 1; }
    int trees_at(std::int32_t node) const { return std::popcount(trees_[node]); }
    std::int32_t left(std::int32_t bundle) const { return left_[bundle]; }

    // Whether as many trees as there are can reach a node, all of them being at the root.
    bool reaches(std::int32_t root, std::int32_t node) { return flows(all_, root, node); }

    // Whether a hop may join a tree that has its source and not its destination. Where it passes
    // a switch, sets without its destination matter too: some `others` stand for them.
    bool allows(int tree, std::int32_t hop, std::span<const std::int32_t> others) {
        for (auto bundle : hops_.steps[hop])
            if (left_[bundle] <= 0) return false;
        if (!flows(Mask{1} << tree, hops_.src[hop], hops_.dst[hop])) return false;
        if (others.empty()) return true;
        put(tree, hop, 1);
        const bool good = std::ranges::all_of(others, [&](auto npu) { return flows(0, -1, npu); });
        put(tree, hop, -1);
        return good;
    }
    void join(int tree, std::int32_t hop) { put(tree, hop, 1); }

  private:
    using Mask = std::uint64_t;
    // How the search, which runs from the sink against the flow, came to a node: from which one,
    // by which bundle (its flow undone, if it is turned round) or from where else in a tree.
    struct Step {
        enum Kind : std::int32_t { sink, bundle, undone, tree } kind = sink;
        std::int32_t number = -1, node = -1;
        std::uint32_t search = 0;  // in which search
    };

    void put(int tree, std::int32_t hop, int sign) {
        for (auto bundle : hops_.steps[hop]) left_[bundle] -= sign;
        trees_[hops_.dst[hop]] ^= Mask{1} << tree;
    }

    static Rows nodes_of(const Network& network, const Hops& hops, bool inwards) {
        std::vector<std::int32_t> ends;
        for (std::int32_t b = 0; b < hops.bundles.size(); ++b)
            ends.push_back((inwards ? network.dst : network.src)[hops.bundles[b][0]]);
        return group_by(ends, network.nodes());
    }

    // Whether a flow as large as the number of trees reaches a node: one unit out of each tree but
    // those left out, wherever in it, and any number out of `source`.
    bool flows(Mask left_out, std::int32_t source, std::int32_t sink) {
        for (auto b : touched_) flow_[b] = 0;
        touched_.clear();
        const Mask at_once = trees_[sink] & all_ & ~left_out;
        idle_ = all_ & ~left_out & ~at_once;
        used_ = 0;
        auto missing = static_cast<std::int32_t>(std::popcount(all_ & ~at_once));
        while (missing > 0) {
            const auto more = augment(source, sink, missing);
            if (more == 0) return false;
            missing -= more;
        }
        return true;
    }

    // Pushes more along one way; returns how much, up to `most`.
    std::int32_t augment(std::int32_t source, std::int32_t sink, std::int32_t most) {
        ++search_;
        queue_.assign(1, sink);
        via_[sink] = {Step::sink, -1, -1, search_};
        Mask looked_at = 0;
        for (std::size_t i = 0; i < queue_.size(); ++i) {
            const auto node = queue_[i];
            ++work_;
            if (node == source) return push(node, most);
            if (const Mask idle = trees_[node] & idle_; idle != 0)
                return push_out(node, idle, most);
            const auto visit = [&](std::int32_t next, Step::Kind kind, std::int32_t number) {
                if (via_[next].search == search_) return;
                via_[next] = {kind, number, node, search_};
                queue_.push_back(next);
            };
            for (auto b : in_[node])
                if (flow_[b] < left_[b]) visit(from_[b], Step::bundle, b);
            for (auto b : out_[node])
                if (flow_[b] > 0) visit(to_[b], Step::undone, b);
            for (Mask more = trees_[node] & used_ & ~looked_at; more != 0; more &= more - 1) {
                const int tree = std::countr_zero(more);
                visit(entry_[tree], Step::tree, tree);
                looked_at |= Mask{1} << tree;
            }
        }
        return 0;
    }
    // Out of as many idle trees at a node as there is room for on the way.
    std::int32_t push_out(std::int32_t node, Mask idle, std::int32_t most) {
        const auto amount = push(node, std::min<std::int32_t>(most, std::popcount(idle)));
        for (auto k = amount; k > 0; --k, idle &= idle - 1) {
            const int tree = std::countr_zero(idle);
            idle_ &= ~(Mask{1} << tree);
            used_ |= Mask{1} << tree;
            entry_[tree] = node;
        }
        return amount;
    }
    std::int32_t push(std::int32_t node, std::int32_t amount) {
        for (Step step = via_[node]; step.kind != Step::sink; step = via_[step.node]) {
            const auto number = step.number;
            if (step.kind == Step::bundle) amount = std::min(amount, left_[number] - flow_[number]);
            if (step.kind == Step::undone) amount = std::min(amount, flow_[number]);
            if (step.kind == Step::tree) amount = 1;
        }
        for (Step step = via_[node]; step.kind != Step::sink; step = via_[step.node]) {
            if (step.kind == Step::bundle) {
                flow_[step.number] += amount;
                touched_.push_back(step.number);
            }
            if (step.kind == Step::undone) flow_[step.number] -= amount;
            if (step.kind == Step::tree) entry_[step.number] = step.node;
        }
        return amount;
    }

    const Hops& hops_;
    const Rows out_, in_;                  // bundles by the nodes at their ends
    std::vector<std::int32_t> from_, to_;  // by bundle
    std::vector<std::int32_t> left_;       // by bundle: for how many more trees there is room
    std::vector<Mask> trees_;              // by node: the trees that have it
    Mask all_ = 0;
    // Of the flow: the trees that could give a unit, those that do, and where in them.
    Mask idle_ = 0, used_ = 0;
    std::int32_t entry_[most_trees] = {};
    std::vector<Step> via_;
    std::uint32_t search_ = 0;
    std::vector<std::int32_t> flow_, touched_, queue_;
    std::int64_t work_ = 0;
};

}  // namespace weft
