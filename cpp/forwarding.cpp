#include "forwarding.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

// The links of each hop. Parallel links alike serve the hops that cross them in turn.
Rows links_of_hops(const Hops& hops) {
    std::vector<std::int64_t> turn(hops.bundles.size(), 0);
    Rows links;
    for (std::int32_t hop = 0; hop < hops.count(); ++hop) {
        for (auto bundle : hops.steps[hop]) {
            const auto alike = hops.bundles[bundle];
            links.items.push_back(alike[turn[bundle]++ % static_cast<std::int64_t>(alike.size())]);
        }
        links.close();
    }
    return links;
}

}  // namespace

Forwarding::Forwarding(const Network& network, CostModel cost, std::int64_t largest,
                       const Rows& sets)
    : npus_(static_cast<std::size_t>(network.npus)), hops_(find_hops(network, cost, largest)),
      links_(links_of_hops(hops_)), sets_(sets), distance_(npus_), may_hold_(npus_) {}

std::int32_t Forwarding::towards(std::int32_t taker, std::int32_t reach) {
    const auto key = static_cast<std::int64_t>(reach + 1) * static_cast<std::int64_t>(npus_) + taker;
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
    if (!hops_.single_links) spread(taker, next);
}

void Forwarding::allow(std::int32_t reach) {
    std::fill(may_hold_.begin(), may_hold_.end(), reach < 0);
    if (reach >= 0)
        for (auto npu : sets_[reach]) may_hold_[npu] = true;
}

bool Forwarding::is_better(std::int32_t hop, std::int32_t than) const {
    return than == none || std::pair(links_[hop][0], hop) < std::pair(links_[than][0], than);
}

// Of the ways to the NPU that was chosen, the one whose turn it is for this taker.
void Forwarding::spread(std::int32_t taker, std::span<std::int32_t> next) const {
    std::vector<std::int32_t> ways;
    for (std::size_t npu = 0; npu < npus_; ++npu) {
        const auto chosen = next[npu];
        if (chosen == none || links_[chosen].size() == 1) continue;
        ways.clear();
        for (auto hop : hops_.out[static_cast<std::int64_t>(npu)])
            if (hops_.dst[hop] == hops_.dst[chosen] && links_[hop].size() == links_[chosen].size())
                ways.push_back(hop);
        next[npu] = ways[static_cast<std::size_t>(taker) % ways.size()];
    }
}

namespace {

// Gives hops their numbers in the table of routes: the link's own, or in order of use.
class RouteNumbers {
  public:
    RouteNumbers(const Network& network, const Forwarding& paths, Rows& routes)
        : paths_(paths), routes_(routes), number_(paths.hops(), -1) {
        if (!paths.single_links()) return;
        for (std::int32_t link = 0; link < network.links(); ++link) {
            routes_.items.push_back(link);
            routes_.close();
        }
    }

    std::int32_t of(std::int32_t hop) {
        if (paths_.single_links()) return hop;
        auto& number = number_[hop];
        if (number < 0) {
            number = routes_.size();
            const auto links = paths_.links_of(hop);
            routes_.items.insert(routes_.items.end(), links.begin(), links.end());
            routes_.close();
        }
        return number;
    }

  private:
    const Forwarding& paths_;
    Rows& routes_;
    std::vector<std::int32_t> number_;  // by hop; -1 until it is used
};

}  // namespace

Forwarded forward(const Network& network, CostModel cost, std::span<const std::int32_t> src,
                  std::span<const std::int32_t> dst, std::span<const std::int32_t> reach,
                  std::int64_t largest, const Rows& sets) {
    Forwarding paths(network, cost, largest, sets);
    Forwarded made;
    RouteNumbers numbers(network, paths, made.routes);
    std::vector<std::size_t> at_home;
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
            if (hop == Forwarding::none) return {.lost = static_cast<std::int32_t>(m)};
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

std::vector<std::int32_t> nearest(const Network& network, CostModel cost,
                                  std::span<const std::int32_t> holders,
                                  std::span<const std::int32_t> taker,
                                  std::span<const std::int32_t> reach, std::int64_t largest,
                                  const Rows& sets) {
    Forwarding paths(network, cost, largest, sets);
    std::vector<std::int32_t> found(taker.size(), Forwarding::none);
    for (std::size_t m = 0; m < taker.size(); ++m) {
        const auto table = paths.towards(taker[m], reach[m]);
        std::int32_t fewest = -1;
        for (auto npu : sets[holders[m]]) {
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
