#include "programs/order.h"

#include <algorithm>
#include <numeric>

namespace weft::program {

Order::Order(std::int64_t events, std::int64_t actions, Chains chains, Edges edges)
    : cause_offsets_(static_cast<std::size_t>(events) + 1, 0), spot_(events), level_(events, -1),
      seen_(events, 0), parent_(events, -1) {
    link(actions, chains, edges);
    sort_by_level();
}

void Order::link(std::int64_t actions, Chains chains, Edges edges) {
    const auto each_edge = [&](auto&& visit) {
        for (std::int64_t a = 0; a < actions; ++a) visit(2 * a, 2 * a + 1);
        for (std::size_t e = 0; e < edges.size(); ++e) visit(edges.from[e], edges.to[e]);
        for (std::size_t c = 0; c + 1 < chains.offsets.size(); ++c)
            for (auto i = chains.offsets[c] + 1; i < chains.offsets[c + 1]; ++i)
                visit(chains.events[i - 1], chains.events[i]);
    };
    each_edge([&](auto, auto to) { ++cause_offsets_[to + 1]; });
    std::partial_sum(cause_offsets_.begin(), cause_offsets_.end(), cause_offsets_.begin());
    causes_.resize(static_cast<std::size_t>(cause_offsets_.back()));
    std::vector<std::int64_t> next(cause_offsets_.begin(), cause_offsets_.end() - 1);
    each_edge([&](auto from, auto to) { causes_[next[to]++] = from; });
    for (std::size_t c = 0; c + 1 < chains.offsets.size(); ++c)
        for (auto i = chains.offsets[c]; i < chains.offsets[c + 1]; ++i)
            spot_[chains.events[i]] = {static_cast<std::int32_t>(c), i - chains.offsets[c]};
}

// Levels rise along every edge, so sorting by level (then by number) is a valid order; and it is
// breadth first: what could run at the same time stands together.
void Order::sort_by_level() {
    const auto events = static_cast<std::int64_t>(level_.size());
    std::vector<std::int64_t> offsets(events + 1, 0), effects(causes_.size());
    for (const auto cause : causes_) ++offsets[cause + 1];
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1), waits(events), ready;
    for (std::int64_t event = 0; event < events; ++event) {
        waits[event] = static_cast<std::int64_t>(causes(event).size());
        for (const auto cause : causes(event)) effects[next[cause]++] = event;
        if (waits[event] == 0) ready.push_back(event);
    }
    for (std::int32_t level = 0; !ready.empty(); ++level) {
        std::sort(ready.begin(), ready.end());
        std::vector<std::int64_t> following;
        for (const auto event : ready) {
            level_[event] = level;
            sequence_.push_back(event);
            for (auto i = offsets[event]; i < offsets[event + 1]; ++i)
                if (--waits[effects[i]] == 0) following.push_back(effects[i]);
        }
        ready = std::move(following);
    }
}

// Whoever is left out has a cause that is left out too: going from cause to cause must repeat.
std::vector<std::int64_t> Order::cycle() const {
    auto event =
        static_cast<std::int64_t>(std::find(level_.begin(), level_.end(), -1) - level_.begin());
    std::vector<std::int64_t> path, place(level_.size(), -1);
    while (place[event] < 0) {
        place[event] = static_cast<std::int64_t>(path.size());
        path.push_back(event);
        const auto all = causes(event);
        event = *std::find_if(all.begin(), all.end(), [&](auto c) { return level_[c] < 0; });
    }
    path.erase(path.begin(), path.begin() + place[event]);
    std::reverse(path.begin(), path.end());
    return path;
}

bool Order::before(std::int64_t first, std::int64_t second) {
    const Spot a = spot_[first], b = spot_[second];
    if (a.chain >= 0 && a.chain == b.chain) return a.at < b.at;
    return is_known(second, a) || search(first, second);
}

bool Order::is_known(std::int64_t event, Spot goal) const {
    const Spot here = spot_[event];
    if (goal.chain < 0 || here.chain < 0) return false;
    if (here.chain == goal.chain) return here.at > goal.at;
    const auto found = known_.find(key(here.chain, goal.chain));
    return found != known_.end() && here.at >= found->second.from && goal.at <= found->second.upto;
}

// Backwards from `second`, never below the level of `first`, the nearest first: most ways are
// short. What is found out holds for all events on the way.
bool Order::search(std::int64_t first, std::int64_t second) {
    const Spot goal = spot_[first];
    ++stamp_;
    queue_.assign(1, second);
    seen_[second] = stamp_;
    parent_[second] = -1;
    for (std::size_t next = 0; next < queue_.size(); ++next) {
        const auto event = queue_[next];
        for (const auto cause : causes(event)) {
            const Spot there = spot_[cause];
            const bool later = goal.chain >= 0 && there.chain == goal.chain && there.at > goal.at;
            if (cause == first || later) {
                remember(event, goal);
                return true;
            }
            if (seen_[cause] == stamp_ || level_[cause] <= level_[first]) continue;
            seen_[cause] = stamp_;
            parent_[cause] = event;
            if (++visits_ > most_visits) return false;
            queue_.push_back(cause);
        }
    }
    return false;
}

void Order::remember(std::int64_t event, Spot goal) {
    if (goal.chain < 0) return;
    for (; event >= 0; event = parent_[event]) {
        const Spot here = spot_[event];
        if (here.chain < 0) continue;
        auto& known =
            known_.try_emplace(key(here.chain, goal.chain), Known{here.at, goal.at}).first->second;
        if (goal.at > known.upto || (goal.at == known.upto && here.at < known.from))
            known = {here.at, goal.at};
    }
}

}  // namespace weft::program
