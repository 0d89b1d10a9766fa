#include "engine/forwarding.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace weft {

Forwarding::Forwarding(const Network& network, CostModel cost, std::int64_t largest, RowsView sets)
    : npus_(static_cast<std::size_t>(network.npus)), hops_(find_hops(network, cost, largest)),
      duration_(time_hops(network, hops_, cost, largest).duration), sets_(sets), distance_(npus_),
      may_hold_(npus_) {
    join_parallel_links(network);
    paths_to_.resize(npus_);
    users_.resize(bundles_.size());
    paths_.resize(bundles_.size());
    for (std::int32_t hop = 0; hop < hops_.count(); ++hop) {
        for (auto bundle : hops_.steps[hop]) first_links_.items.push_back(bundles_[bundle][0]);
        first_links_.close();
        entry_.push_back(network.src[first_links_.items.back()]);
    }
}

// Of parallel links between NPUs each is a hop of its own, of which paths take the first: give that
// one the others' links.
void Forwarding::join_parallel_links(const Network& network) {
    const auto link_of = [&](std::int32_t bundle) { return hops_.bundles[bundle][0]; };
    const auto kind = [&](std::int32_t bundle) {
        const auto link = link_of(bundle);
        return std::tuple(network.src[link], network.dst[link], network.speed[link].bandwidth,
                          network.speed[link].latency);
    };
    std::vector<std::int32_t> order(hops_.bundles.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return kind(a) < kind(b); });
    std::vector<std::int32_t> others(hops_.bundles.size());  // where in `order` those alike begin
    for (std::size_t i = 0; i < order.size(); ++i)
        others[order[i]] = i > 0 && kind(order[i]) == kind(order[i - 1])
                               ? others[order[i - 1]]
                               : static_cast<std::int32_t>(i);
    for (std::int32_t b = 0; b < hops_.bundles.size(); ++b) {
        const auto links = hops_.bundles[b];
        if (links.size() > 1)
            bundles_.items.insert(bundles_.items.end(), links.begin(), links.end());
        else
            for (std::size_t i = others[b]; i < order.size() && kind(order[i]) == kind(b); ++i)
                bundles_.items.push_back(link_of(order[i]));
        bundles_.close();
    }
}

std::int32_t Forwarding::towards(std::int32_t taker, std::int32_t reach) {
    const auto key =
        static_cast<std::int64_t>(reach + 1) * static_cast<std::int64_t>(npus_) + taker;
    const auto [found, is_new] =
        tables_.try_emplace(key, static_cast<std::int32_t>(tables_.size()));
    if (is_new) walk_back(taker, reach);
    return found->second;
}

// Breadth first from the taker, against the direction of the hops.
void Forwarding::walk_back(std::int32_t taker, std::int32_t reach) {
    allow(reach);
    std::fill(distance_.begin(), distance_.end(), -1);
    next_.resize(next_.size() + npus_, none);
    const std::span next{next_.data() + next_.size() - npus_, npus_};
    queue_.assign(1, taker);
    distance_[taker] = 0;
    for (std::size_t i = 0; i < queue_.size(); ++i)
        for (auto hop : hops_.in[queue_[i]]) {
            const auto npu = hops_.src[hop];
            if (!may_hold_[npu]) continue;
            if (distance_[npu] < 0) {
                distance_[npu] = distance_[queue_[i]] + 1;
                queue_.push_back(npu);
            }
            if (distance_[npu] == distance_[queue_[i]] + 1 && is_better(hop, next[npu]))
                next[npu] = hop;
        }
    if (!hops_.single_links) left_.insert(left_.end(), distance_.begin(), distance_.end());
    settled_.resize(next_.size());
    taker_.push_back(taker);
}

void Forwarding::allow(std::int32_t reach) {
    std::fill(may_hold_.begin(), may_hold_.end(), reach < 0);
    if (reach >= 0)
        for (auto npu : sets_[reach]) may_hold_[npu] = true;
}

bool Forwarding::is_better(std::int32_t hop, std::int32_t than) const {
    return than == none ||
           std::pair(first_links_[hop][0], hop) < std::pair(first_links_[than][0], than);
}

std::int32_t Forwarding::settle(std::int32_t table, std::int32_t npu) {
    const auto at = place(table, npu);
    auto& hop = next_[at];
    if (hop == none || settled_[at]) return hop;
    settled_[at] = true;
    if (hops_.steps[hop].size() > 1) hop = least_used(table, npu, hop);
    const auto ways = ways_to(at);
    if (ways.size() > 1) takers_[entry_[ways[0]]].push_back(taker_[table]);
    ++paths_to_[hops_.dst[hop]];
    undealt_.push_back(at);
    return hop;
}

bool Forwarding::settle_path(std::int32_t table, std::int32_t npu, std::int32_t taker) {
    while (npu != taker) {
        const auto hop = settle(table, npu);
        if (hop == none) return false;
        npu = end_of(hop);
    }
    return true;
}

// Of the NPUs to which the link that was chosen leads the one with the fewest paths, over one of
// the fastest ways.
std::int32_t Forwarding::least_used(std::int32_t table, std::int32_t npu,
                                    std::int32_t chosen) const {
    const auto rank = [&](std::int32_t hop) {
        return std::tuple(duration_[hop], paths_to_[hops_.dst[hop]]);
    };
    auto best = chosen;
    for (auto hop : hops_.out[npu])
        if (left_[place(table, hops_.dst[hop])] + 1 == left_[place(table, npu)] &&
            (hops_.dst[hop] == hops_.dst[chosen] ||
             first_links_[hop][0] == first_links_[chosen][0]) &&
            rank(hop) < rank(best))
            best = hop;
    return best;
}

// The hops that lead to the same NPU as the one at a place, as fast.
std::vector<std::int32_t> Forwarding::ways_to(std::size_t place) const {
    const auto hop = next_[place];
    if (hops_.steps[hop].size() == 1) return {hop};
    std::vector<std::int32_t> ways;
    for (auto other : hops_.out[hops_.src[hop]])
        if (hops_.dst[other] == hops_.dst[hop] && duration_[other] == duration_[hop])
            ways.push_back(other);
    return ways;
}

// Takers behind one switch get ways in turn, in order of their numbers: so those of neighbours to
// neighbours, also behind other switches, are different ones. Then paths whose links are crowded
// take ways that are less so; where all send to all none are.
void Forwarding::deal() {
    for (auto& [entry, takers] : takers_) {
        std::sort(takers.begin(), takers.end());
        takers.erase(std::unique(takers.begin(), takers.end()), takers.end());
    }
    for (auto at : undealt_) {
        const auto ways = ways_to(at);
        if (ways.size() > 1) {
            const auto& takers = takers_[entry_[ways[0]]];
            const auto taker = taker_[at / npus_];
            const auto turn =
                std::lower_bound(takers.begin(), takers.end(), taker) - takers.begin();
            next_[at] = ways[turn % static_cast<std::int64_t>(ways.size())];
        }
        for (auto bundle : hops_.steps[next_[at]]) ++paths_[bundle];
    }
    for (auto at : undealt_) {
        for (auto bundle : hops_.steps[next_[at]]) --paths_[bundle];
        next_[at] = least_crowded(at);
        for (auto bundle : hops_.steps[next_[at]]) ++paths_[bundle];
        use(next_[at]);
    }
    undealt_.clear();
}

// The hop at a place, or one as good whose busiest links have fewer paths.
std::int32_t Forwarding::least_crowded(std::size_t place) const {
    const auto crowd = [&](std::int32_t hop) {
        double most = 0;
        for (auto bundle : hops_.steps[hop])
            most = std::max(most, static_cast<double>(paths_[bundle]) /
                                      static_cast<double>(bundles_[bundle].size()));
        return most;
    };
    auto best = next_[place];
    for (auto hop : ways_to(place))
        if (crowd(hop) < crowd(best)) best = hop;
    return best;
}

void Forwarding::use(std::int32_t hop) {
    const auto steps = hops_.steps[hop];
    for (std::size_t k = 0; k < steps.size(); ++k) {
        if (bundles_[steps[k]].size() == 1) continue;
        const auto [user, is_new] = user_.try_emplace(user_key(hop, k), User{users_[steps[k]], 0});
        users_[steps[k]] += is_new;
    }
}

// Parallel links are shared by the NPUs at the nearer end: what goes up is that of its sources,
// what comes down that of its takers.
std::int64_t Forwarding::user_key(std::int32_t hop, std::size_t step) const {
    const auto steps = hops_.steps[hop];
    const auto npu = 2 * step < steps.size() ? hops_.src[hop] : hops_.dst[hop];
    return static_cast<std::int64_t>(steps[step]) * static_cast<std::int64_t>(npus_) + npu;
}

// How many links of a bundle are for the user of this rank: all those whose numbers are the rank
// and multiples of the number of users above it.
std::int64_t Forwarding::share(std::int32_t bundle, std::int64_t rank) const {
    const auto links = static_cast<std::int64_t>(bundles_[bundle].size());
    return (links - rank % links + users_[bundle] - 1) / users_[bundle];
}

std::int64_t Forwarding::ways(std::int32_t hop) const {
    const auto steps = hops_.steps[hop];
    std::int64_t most = 1;
    for (std::size_t k = 0; k < steps.size(); ++k)
        if (bundles_[steps[k]].size() > 1)
            most = std::max(most, share(steps[k], user_.at(user_key(hop, k)).rank));
    return most;
}

std::span<const std::int32_t> Forwarding::take(std::int32_t hop) {
    const auto steps = hops_.steps[hop];
    const auto first = first_links_[hop];
    taken_.assign(first.begin(), first.end());
    for (std::size_t k = 0; k < steps.size(); ++k) {
        const auto links = bundles_[steps[k]];
        if (links.size() == 1) continue;
        auto& [rank, turn] = user_.at(user_key(hop, k));
        const auto own = rank % static_cast<std::int64_t>(links.size());
        taken_[k] = links[own + users_[steps[k]] * (turn++ % share(steps[k], rank))];
    }
    return taken_;
}

namespace {

// Gives hops of messages their numbers in the table of routes: the link's own, or in order of use.
class RouteNumbers {
  public:
    RouteNumbers(const Network& network, Forwarding& paths, Rows& routes)
        : paths_(paths), routes_(routes), number_(paths.hops(), -1) {
        if (!paths.single_links()) return;
        for (std::int32_t link = 0; link < network.links(); ++link) {
            routes_.items.push_back(link);
            routes_.close();
        }
    }

    // Of the next message over a hop.
    std::int32_t of(std::int32_t hop) {
        if (paths_.single_links()) return paths_.take(hop)[0];
        if (number_[hop] >= 0) return number_[hop];
        const auto links = paths_.take(hop);
        if (paths_.ways(hop) == 1) return number_[hop] = add(links);
        const auto [found, is_new] =
            turns_.try_emplace({links.begin(), links.end()}, routes_.size());
        if (is_new) add(links);
        return found->second;
    }

  private:
    std::int32_t add(std::span<const std::int32_t> links) {
        routes_.items.insert(routes_.items.end(), links.begin(), links.end());
        routes_.close();
        return routes_.size() - 1;
    }

    Forwarding& paths_;
    Rows& routes_;
    std::vector<std::int32_t> number_;  // by hop; -1 until it is used, or if messages take turns
    std::map<std::vector<std::int32_t>, std::int32_t> turns_;  // of hops whose messages do
};

}  // namespace

Forwarded forward(const Network& network, CostModel cost, std::span<const std::int32_t> src,
                  std::span<const std::int32_t> dst, std::span<const std::int32_t> reach,
                  const Chunks& chunks) {
    Forwarding paths(network, cost, chunks.largest(), chunks.sets);
    Forwarded made;
    RouteNumbers numbers(network, paths, made.routes);
    std::vector<std::size_t> at_home;
    for (std::size_t m = 0; m < src.size(); ++m)
        if (!paths.settle_path(paths.towards(dst[m], reach[m]), src[m], dst[m]))
            return {.lost = static_cast<std::int32_t>(m)};
    paths.deal();
    for (std::size_t m = 0; m < src.size(); ++m) {
        const auto table = paths.towards(dst[m], reach[m]);
        auto npu = src[m];
        if (npu == dst[m]) {
            at_home.push_back(made.src.size());
            made.src.push_back(npu);
            made.dst.push_back(npu);
            made.route.push_back(-1);
        }
        while (npu != dst[m]) {
            const auto hop = paths.from(table, npu);
            made.src.push_back(npu);
            made.dst.push_back(npu = paths.end_of(hop));
            made.route.push_back(numbers.of(hop));
        }
        made.hop_offsets.push_back(static_cast<std::int64_t>(made.src.size()));
    }
    for (auto hop : at_home) made.route[hop] = made.routes.size();
    if (!at_home.empty()) made.routes.close();
    return made;
}

std::vector<std::int32_t> nearest(const Network& network, CostModel cost, const Chunks& chunks,
                                  std::span<const std::int64_t> chunk,
                                  std::span<const std::int32_t> taker) {
    Forwarding paths(network, cost, chunks.largest(), chunks.sets);
    std::vector<std::int32_t> found(taker.size(), Forwarding::none);
    for (std::size_t m = 0; m < taker.size(); ++m) {
        const auto number = static_cast<std::int32_t>(chunk[m]);
        const auto table = paths.towards(taker[m], chunks.reach[number]);
        std::int32_t fewest = -1;
        for (auto npu : chunks.holders(number)) {
            std::int32_t length = 0, at = npu;
            for (auto hop = paths.from(table, at); hop != Forwarding::none;
                 hop = paths.from(table, at)) {
                at = paths.end_of(hop);
                ++length;
            }
            if (at != taker[m] || (fewest >= 0 && length >= fewest)) continue;
            found[m] = npu;
            fewest = length;
        }
    }
    return found;
}

}  // namespace weft
