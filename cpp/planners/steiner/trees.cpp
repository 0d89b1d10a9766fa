#include "planners/steiner/trees.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace weft {
namespace {

// Trees times hops in all; where chunks are more than that allows, those alike share trees.
constexpr double most_work = 1 << 26;
constexpr std::size_t least_trees = 32;  // of a class, if it has as many chunks

// For each sum whose hub is free: in the first pass, and later besides the hub it has.
constexpr int hubs_tried = 3, hubs_tried_later = 1;

// Where an NPU has more hops than this, to all others by way of switches, relays gain little and
// take long to consider: they are used only where there is no other way.
constexpr std::int64_t dense_degree = 100;

// What counts as full, over the time of the busiest link: a little less, so that it is too full.
constexpr double full = 0.95;
// Trees with a link busier than this, over the time of the busiest, are grown again.
constexpr double crowded = 0.9;

}  // namespace

SteinerRouter::SteinerRouter(const Hops& hops, std::span<const HopTimes> times,
                             const Chunks& chunks, const Sizes& sizes, double depth_price,
                             std::uint64_t seed, ps bound, Progress& progress)
    : hops_(hops), chunks_(chunks), progress_(progress), random_(seed),
      bound_(static_cast<double>(std::max<ps>(bound, 1))), loads_(hops, times, depth_price),
      grower_(hops, times, loads_), classes_(group_chunks(chunks, sizes)),
      last_hub_(classes_.size(), -1), needed_(hops.out.size(), false),
      is_dense_(hops.count() > dense_degree * static_cast<std::int64_t>(hops.out.size())) {
    share_trees(chunks.bytes.size());
    order_.resize(trees_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
}

void SteinerRouter::share_trees(std::size_t chunks) {
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

bool SteinerRouter::pass() {
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

bool SteinerRouter::is_crowded(const SteinerTree& tree, double limit) const {
    for (const auto* hops : {&tree.up, &tree.down})
        for (auto hop : *hops)
            for (auto bundle : hops_.steps[hop])
                if (loads_.busy(bundle) > limit) return true;
    return false;
}

bool SteinerRouter::route(SteinerTree& tree) {
    const auto& kind = of(tree);
    put(tree, -1);
    if (is_dense_) {
        grower_.confine(ends_within_reach(kind));
        if (grow(tree)) return true;
    }
    grower_.confine(kind.reach < 0 ? std::span<const std::int32_t>() : chunks_.sets[kind.reach]);
    return grow(tree);
}

std::vector<std::int32_t> SteinerRouter::ends_within_reach(const ChunkClass& kind) const {
    std::vector<std::int32_t> ends, result;
    std::ranges::set_union(chunks_.sets[kind.pre], chunks_.sets[kind.post],
                           std::back_inserter(ends));
    if (kind.reach < 0) return ends;
    std::ranges::set_intersection(ends, chunks_.sets[kind.reach], std::back_inserter(result));
    return result;
}

// Puts a new tree in the place of one whose load has been taken out.
bool SteinerRouter::grow(SteinerTree& tree) {
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

bool SteinerRouter::grow_sum(SteinerTree& tree) {
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

// All there are, the one that served the class last before others.
std::vector<std::int32_t> SteinerRouter::hubs_left(const ChunkClass& kind) const {
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

// A sum for one taker goes up to it. A sum for many may be completed anywhere.
std::vector<std::int32_t> SteinerRouter::hubs_to_try(const SteinerTree& tree) {
    const auto takers = chunks_.sets[of(tree).post];
    if (takers.size() == 1) return {takers[0]};
    std::vector<std::int32_t> hubs;
    if (tree.hub >= 0) hubs.push_back(tree.hub);
    for (int i = 0; i < (tree.hub < 0 ? hubs_tried : hubs_tried_later); ++i)
        hubs.push_back(another_hub(tree));
    return hubs;
}

// A contributor, a taker, or an NPU that the tree has passed so far.
std::int32_t SteinerRouter::another_hub(const SteinerTree& tree) {
    const auto choice = random_.below(tree.up.empty() ? 2 : 3);
    if (choice == 2) return hops_.dst[any_of(tree.up)];
    return any_of(chunks_.sets[choice == 0 ? of(tree).pre : of(tree).post]);
}

bool SteinerRouter::grow_both_ways(SteinerTree& tree, double& cost) {
    const auto& kind = of(tree);
    const std::span hub(&tree.hub, 1);
    if (!grower_.grow({hub, chunks_.sets[kind.post], false, kind.size, tree.chunks}, tree.down,
                      cost))
        return false;
    if (!grower_.grow({hub, chunks_.sets[kind.pre], true, kind.size, tree.chunks}, tree.up, cost))
        return false;
    lower_hub(tree);
    return true;
}

// A sum is complete where the last branches meet: from there on it is copied. The judge wants to
// see it so, and takers on the way need no second copy.
void SteinerRouter::lower_hub(SteinerTree& tree) {
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
void SteinerRouter::prune(SteinerTree& tree) {
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

void SteinerRouter::put(const SteinerTree& tree, double sign) {
    for (const auto* hops : {&tree.up, &tree.down})
        for (auto hop : *hops) loads_.put(hop, of(tree).size, sign * tree.chunks);
}

}  // namespace weft
