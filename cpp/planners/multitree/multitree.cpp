#include "planners/multitree/multitree.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/forwarding.h"
#include "planners/schedule.h"

namespace weft {
namespace {

// The hops between NPUs that need no other NPU, by source, in order of their first link; behind
// switches in order of how many links they cross, and everybody begins with its next.
struct Edges {
    std::vector<std::int32_t> dst;
    Rows out;                         // edges by source NPU
    Rows links;                       // of each edge
    std::vector<std::int32_t> exits;  // how many first links the edges of an NPU have
};

Edges find_edges(const Network& network, Forwarding& paths, std::int32_t reach) {
    for (std::int32_t taker = 0; taker < network.npus; ++taker)
        for (std::int32_t npu = 0; npu < network.npus; ++npu)
            paths.settle(paths.towards(taker, reach), npu);
    paths.deal();
    struct Edge {
        std::int32_t ahead, dst;
        std::vector<std::int32_t> links;
        auto rank() const { return std::tuple(links[0], links.size(), ahead); }
    };
    Edges edges;
    std::vector<Edge> out;
    for (std::int32_t npu = 0; npu < network.npus; ++npu) {
        out.clear();
        for (std::int32_t dst = 0; dst < network.npus; ++dst) {
            const auto hop = paths.from(paths.towards(dst, reach), npu);
            if (hop == Forwarding::none || paths.end_of(hop) != dst) continue;
            const auto ahead = (dst - npu + network.npus) % network.npus;
            for (auto way = paths.ways(hop); way > 0; --way) {
                const auto links = paths.take(hop);
                out.push_back({ahead, dst, {links.begin(), links.end()}});
            }
        }
        std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.rank() < b.rank(); });
        std::int32_t exits = 0, before = -1;
        for (const auto& edge : out) {
            exits += edge.links[0] != before;
            before = edge.links[0];
            edges.out.items.push_back(static_cast<std::int32_t>(edges.dst.size()));
            edges.dst.push_back(edge.dst);
            edges.links.items.insert(edges.links.items.end(), edge.links.begin(), edge.links.end());
            edges.links.close();
        }
        edges.out.close();
        edges.exits.push_back(exits);
    }
    return edges;
}

// A tree, and where its search in this slot stands. Within a slot links only become busy and NPUs
// only join, so an edge that would not do once is not looked at again.
struct Tree {
    std::vector<bool> has;  // by NPU
    std::vector<std::int32_t>
        open;  // NPUs that may still have a new neighbour, in order of joining
    std::vector<std::int32_t> joined;  // in this slot: they send from the next on
    std::size_t missing = 0;           // NPUs of the group that it does not reach yet
    std::size_t at = 0;                // in `open`
    std::size_t edge = 0;              // in the edges of that NPU
    bool spent = true;                 // no edge of that NPU, up to there, leads to a new NPU
};

class Grower {
  public:
    Grower(const Network& network, Edges edges, std::span<const std::int32_t> roots,
           std::span<const std::int32_t> group)
        : edges_(std::move(edges)), trees_(roots.size()), wanted_(network.npus),
          busy_(network.links(), never), exits_(network.npus) {
        for (auto npu : group) wanted_[npu] = true;
        for (std::size_t t = 0; t < roots.size(); ++t) {
            trees_[t].has.resize(network.npus);
            trees_[t].missing = group.size();
            join(trees_[t], roots[t]);
        }
    }

    GrownTrees run() {
        while (std::any_of(trees_.begin(), trees_.end(), [](auto& t) { return t.missing > 0; })) {
            const auto before = made_.src.size();
            grow();
            if (made_.src.size() == before) return stuck();
            ++slot_;
        }
        return pruned();
    }

  private:
    static constexpr std::int32_t never = -1;

    void join(Tree& tree, std::int32_t npu) {
        tree.has[npu] = true;
        tree.joined.push_back(npu);
        tree.missing -= wanted_[npu];
    }

    void grow() {
        exits_ = edges_.exits;
        for (auto& tree : trees_) {
            tree.open.insert(tree.open.end(), tree.joined.begin(), tree.joined.end());
            tree.joined.clear();
            tree.at = tree.edge = 0;
            tree.spent = true;
        }
        for (bool grew = true; grew;) {
            grew = false;
            for (std::size_t t = 0; t < trees_.size(); ++t)
                if (trees_[t].missing > 0) grew |= add_edge(static_cast<std::int32_t>(t));
        }
        for (auto& tree : trees_) std::erase(tree.open, closed);
    }

    bool add_edge(std::int32_t number) {
        Tree& tree = trees_[number];
        for (; tree.at < tree.open.size(); ++tree.at, tree.edge = 0, tree.spent = true) {
            const auto npu = tree.open[tree.at];
            const auto out = edges_.out[npu];
            for (; tree.edge < out.size() && exits_[npu] > 0; ++tree.edge) {
                const auto edge = out[tree.edge];
                if (tree.has[edges_.dst[edge]]) continue;
                tree.spent = false;
                if (!take(edge, npu)) continue;
                join(tree, edges_.dst[edge]);
                made_.tree.push_back(number);
                made_.src.push_back(npu);
                made_.dst.push_back(edges_.dst[edge]);
                made_.slot.push_back(slot_);
                return true;
            }
            if (tree.edge == out.size() && tree.spent) tree.open[tree.at] = closed;
        }
        return false;
    }

    // Holds the links of an edge in this slot, if all are free.
    bool take(std::int32_t edge, std::int32_t npu) {
        const auto links = edges_.links[edge];
        for (auto link : links)
            if (busy_[link] == slot_) return false;
        for (auto link : links) busy_[link] = slot_;
        --exits_[npu];
        return true;
    }

    GrownTrees stuck() const {
        GrownTrees none;
        for (none.lost = 0; trees_[none.lost].missing == 0;) ++none.lost;
        return none;
    }

    // Without the branches that only lead to relays.
    GrownTrees pruned() {
        std::vector<std::vector<bool>> used(trees_.size(), wanted_);
        std::vector<bool> kept(made_.src.size());
        for (auto i = made_.src.size(); i-- > 0;) {
            auto& in_use = used[made_.tree[i]];
            kept[i] = in_use[made_.dst[i]];
            if (kept[i]) in_use[made_.src[i]] = true;
        }
        keep_rows(kept, made_.tree, made_.src, made_.dst, made_.slot);
        return std::move(made_);
    }

    static constexpr std::int32_t closed = -1;  // in the place of an NPU without new neighbours

    Edges edges_;
    std::vector<Tree> trees_;
    std::vector<bool> wanted_;         // by NPU: it is in the group
    std::vector<std::int32_t> busy_;   // by link: the last slot in which it was taken
    std::vector<std::int32_t> exits_;  // by NPU: first links that are free in this slot
    std::int32_t slot_ = 0;
    GrownTrees made_;
};

}  // namespace

GrownTrees grow_trees(const Network& network, CostModel cost, const Chunks& chunks,
                      std::span<const std::int32_t> group) {
    Forwarding paths(network, cost, chunks.largest(), chunks.sets);
    const auto reach = chunks.size() > 0 ? chunks.reach[0] : -1;
    return Grower(network, find_edges(network, paths, reach), group, group).run();
}

}  // namespace weft
