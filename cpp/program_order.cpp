#include "program_order.h"

#include <algorithm>
#include <numeric>

namespace weft::program {

Order::Order(std::int64_t events, std::int64_t actions, Chains chains, Edges edges)
    : cause_offsets_(static_cast<std::size_t>(events) + 1, 0), spot_(events), level_(events, -1),
      seen_(events, 0) {
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
    auto event = static_cast<std::int64_t>(
        std::find(level_.begin(), level_.end(), -1) - level_.begin());
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
    if (a.chain < 0 || b.chain < 0) return search(first, second);
    if (a.chain == b.chain) return a.at < b.at;
    const auto key = static_cast<std::uint64_t>(b.chain) << 32 | static_cast<std::uint32_t>(a.chain);
    if (const auto found = known_.find(key); found != known_.end())
        if (b.at >= found->second.from && a.at <= found->second.upto) return true;
    if (!search(first, second)) return false;
    auto& known = known_.try_emplace(key, Known{b.at, a.at}).first->second;
    if (a.at >= known.upto) known = {b.at, a.at};
    return true;
}

// Backwards from `second`, never below the level of `first`.
bool Order::search(std::int64_t first, std::int64_t second) {
    const Spot goal = spot_[first];
    ++stamp_;
    stack_.assign(1, second);
    while (!stack_.empty()) {
        const auto event = stack_.back();
        stack_.pop_back();
        for (const auto cause : causes(event)) {
            if (cause == first) return true;
            if (seen_[cause] == stamp_ || level_[cause] <= level_[first]) continue;
            if (goal.chain >= 0 && spot_[cause].chain == goal.chain && spot_[cause].at > goal.at)
                return true;
            seen_[cause] = stamp_;
            if (++visits_ > most_visits) return false;
            stack_.push_back(cause);
        }
    }
    return false;
}

}  // namespace weft::program
