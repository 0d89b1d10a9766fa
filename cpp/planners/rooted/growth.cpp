#include "planners/rooted/growth.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weft {
namespace {

constexpr ps most_rounded = 16;
constexpr std::int64_t most_work = 1 << 22;  // of one forest

std::vector<ps> distinct(std::vector<ps> values) {
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::erase(values, 0);
    return values;
}

}  // namespace

ForestGrower::ForestGrower(const Network& network, const Hops& hops, const HopTimes& times,
                           std::int32_t root, std::span<const std::int32_t> members,
                           std::span<const std::int32_t> reach, std::uint64_t seed)
    : hops_(hops), times_(times), root_(root), members_(members), random_(seed),
      room_(network, hops), may_visit_(network.npus, reach.empty()),
      is_member_(network.npus, false), held_(hops.bundles.size(), 0) {
    for (auto npu : reach) may_visit_[npu] = true;
    for (auto npu : members) is_member_[npu] = true;
    for (std::int32_t hop = 0; hop < hops.count(); ++hop) {
        if (!may_visit_[hops.src[hop]] || !may_visit_[hops.dst[hop]]) continue;
        for (auto i = hops.steps.offsets[hop]; i < hops.steps.offsets[hop + 1]; ++i) {
            auto& held = held_[hops.steps.items[i]];
            held = std::max({held, times.holds[i].length, ps{1}});
        }
    }
    find_groups();
    find_nearest();
    find_close();
}

void ForestGrower::find_groups() {
    std::vector<std::int32_t> of_bundle, npus;
    for (std::int32_t hop = 0; hop < hops_.count(); ++hop) of_bundle.push_back(hops_.steps[hop][0]);
    groups_ = group_by(of_bundle, hops_.bundles.size());
    for (std::int32_t group = 0; group < groups_.size(); ++group)
        npus.push_back(groups_[group].empty() ? root_ : hops_.src[groups_[group][0]]);
    groups_out_ = group_by(npus, hops_.out.size());
    std::vector<std::int32_t> last(hops_.bundles.size(), -1);
    for (std::int32_t hop = 0; hop < hops_.count(); ++hop)
        last[hops_.steps[hop].back()] = hops_.dst[hop];
    for (std::int32_t npu = 0; npu < hops_.out.size(); ++npu) {
        for (auto hop : hops_.in[npu]) {
            const auto bundle = hops_.steps[hop].back();
            if (last[bundle] == npu) bundles_in_.items.push_back(bundle);
            last[bundle] = -1;  // once
        }
        bundles_in_.close();
    }
}

void ForestGrower::find_close() {
    for (std::int32_t npu = 0; npu < hops_.out.size(); ++npu) {
        ps least = never;
        for (auto hop : hops_.out[npu]) least = std::min(least, times_.duration[hop]);
        for (auto hop : hops_.out[npu])
            if (times_.duration[hop] == least) close_.items.push_back(hops_.dst[hop]);
        close_.close();
    }
}

void ForestGrower::find_nearest() {
    std::vector<ps> soonest(hops_.out.size(), never);
    using Reached = std::pair<ps, std::int32_t>;
    std::priority_queue<Reached, std::vector<Reached>, std::greater<>> queue;
    soonest[root_] = 0;
    queue.push({0, root_});
    while (!queue.empty()) {
        const auto [time, npu] = queue.top();
        queue.pop();
        if (time > soonest[npu]) continue;
        for (auto hop : hops_.out[npu]) {
            const auto to = hops_.dst[hop];
            if (!may_visit_[to] || time + times_.duration[hop] >= soonest[to]) continue;
            soonest[to] = time + times_.duration[hop];
            queue.push({soonest[to], to});
        }
    }
    nearest_ = 0;
    for (auto npu : members_) nearest_ = std::max(nearest_, soonest[npu]);
}

std::vector<std::int32_t> ForestGrower::capacities(ps slot) const {
    std::vector<std::int32_t> capacity;
    for (std::int32_t b = 0; b < hops_.bundles.size(); ++b) {
        const auto links = static_cast<ps>(hops_.bundles[b].size());
        const ps room = held_[b] == 0 ? 0 : slot / held_[b] * links;
        capacity.push_back(static_cast<std::int32_t>(std::min<ps>(room, 1 << 20)));
    }
    return capacity;
}

// Whether so many trees can leave the root and come to every member: a necessary condition.
bool ForestGrower::has_room_at_ends(int trees, ps slot) const {
    const auto room = capacities(slot);
    const auto sum = [&](const Rows& bundles, std::int32_t npu) {
        std::int64_t all = 0;
        for (auto bundle : bundles[npu]) all += room[bundle];
        return all;
    };
    return sum(groups_out_, root_) >= trees && std::ranges::all_of(members_, [&](auto npu) {
               return npu == root_ || sum(bundles_in_, npu) >= trees;
           });
}

bool ForestGrower::has_room(int trees, ps slot) {
    room_.reset(root_, trees, capacities(slot));
    return std::ranges::all_of(members_,
                               [&](auto npu) { return npu == root_ || room_.reaches(root_, npu); });
}

ps ForestGrower::least_depth(int trees, ps slot) const {
    const auto room = capacities(slot);
    std::int64_t most = 1, at_root = 0;  // chunks that an NPU sends in a slot
    for (std::int32_t npu = 0; npu < static_cast<std::int32_t>(hops_.out.size()); ++npu) {
        std::int64_t sum = 0;
        for (auto group : groups_out_[npu])
            if (!groups_[group].empty()) sum += room[group];
        most = std::max(most, sum);
        if (npu == root_) at_root = sum;
    }
    const ps shortest = *std::ranges::min_element(times_.duration);
    double level = static_cast<double>(at_root) / trees, reached = level;
    ps depth = shortest;
    while (reached < static_cast<double>(members_.size()) - 1 && depth < nearest_ * 64) {
        level *= static_cast<double>(most);
        reached += level;
        depth += shortest;
    }
    return std::max(nearest_, depth);
}

ps ForestGrower::slot_of(int trees) {
    std::vector<ps> slots;
    for (auto held : distinct(held_))
        for (int j = 1; j <= trees; ++j)  // a little more, since times are rounded up
            slots.push_back(held * j + std::min<ps>(most_rounded, held / 256));
    slots = distinct(std::move(slots));
    auto slot =
        std::ranges::partition_point(slots, [&](ps one) { return !has_room_at_ends(trees, one); });
    while (slot != slots.end() && !has_room(trees, *slot)) ++slot;
    return slot == slots.end() ? never : *slot;
}

ps ForestGrower::slot_of_all() const {
    return *std::ranges::max_element(held_) * static_cast<ps>(hops_.out.size());
}

std::optional<Forest> ForestGrower::grow(int trees, ps slot, bool in_step) {
    Forest forest{std::vector<std::vector<Branch>>(trees), std::vector<ps>(trees, 0), slot,
                  in_step};
    room_.reset(root_, trees, capacities(slot));
    in_step_ = in_step;
    rota_.reset(in_step ? hops_.bundles.items.size() : 0, slot);
    arrival_.assign(trees * hops_.out.size(), 0);
    turn_.assign(hops_.bundles.size(), 0);
    sent_.assign(trees * groups_.size(), 0);
    refused_.assign(static_cast<std::size_t>(trees) * hops_.count(), false);
    offers_ = {};
    for (int tree = 0; tree < trees; ++tree) offer(tree, root_);
    const auto begun = work();
    while (!offers_.empty()) {
        if (work() - begun > most_work) return {};
        const Offer offered = offers_.top();
        offers_.pop();
        const Offer best = best_of(offered);
        if (best.hop < 0) continue;
        if (offered.arrival < best.arrival) {
            offers_.push(best);
            continue;
        }
        if (allows(best.tree, best.hop))
            join(forest, best);
        else
            refused_[static_cast<std::size_t>(best.tree) * hops_.count() + best.hop] = true;
        offers_.push(best);
    }
    for (int tree = 0; tree < trees; ++tree) {
        for (auto npu : members_)
            if (!room_.has(tree, npu)) return {};
        prune(forest, tree);
    }
    if (!in_step) {
        ps held = never;  // trees that share the first link wait for each other
        for (auto group : groups_out_[root_])
            if (held_[group] > 0)
                held = std::min(held, held_[group] / static_cast<ps>(hops_.bundles[group].size()));
        for (auto& depth : forest.depth)
            depth += std::max<ps>(0, std::min(slot, trees * held) - held);
    }
    return forest;
}

bool ForestGrower::allows(int tree, std::int32_t hop) {
    if (hops_.steps[hop].size() == 1) return room_.allows(tree, hop, {});
    return room_.allows(tree, hop, neediest(hops_.src[hop], hops_.dst[hop]));
}

// Members besides two NPUs that the fewest trees have: of all, and of those close to the two.
std::vector<std::int32_t> ForestGrower::neediest(std::int32_t src, std::int32_t dst) const {
    std::vector<std::int32_t> found;
    const auto add = [&](std::span<const std::int32_t> npus) {
        std::int32_t least = -1;
        for (auto npu : npus)
            if (is_member_[npu] && npu != src && npu != dst &&
                (least < 0 || room_.trees_at(npu) < room_.trees_at(least)))
                least = npu;
        if (least >= 0 && std::ranges::find(found, least) == found.end()) found.push_back(least);
    };
    add(members_);
    add(close_[src]);
    add(close_[dst]);
    return found;
}

void ForestGrower::offer(int tree, std::int32_t npu) {
    for (auto group : groups_out_[npu])
        if (!groups_[group].empty())
            offers_.push(best_of({0, 0, random_.below(1 << 20), tree, group}));
}

// What a group can offer now; no hop if nothing.
ForestGrower::Offer ForestGrower::best_of(const Offer& old) {
    Offer best{never, 0, old.chance, old.tree, old.group};
    const auto hops = groups_[old.group];
    const auto first = hops.size() > 1 ? random_.below(static_cast<std::uint32_t>(hops.size())) : 0;
    for (std::size_t i = 0; i < hops.size(); ++i) {
        const auto hop = hops[(first + i) % hops.size()];
        const auto npu = hops_.dst[hop];
        if (!may_visit_[npu] || room_.has(old.tree, npu)) continue;
        if (refused_[static_cast<std::size_t>(old.tree) * hops_.count() + hop]) continue;
        ++work_;
        const ps start = start_of(old.tree, hop);
        if (start == never) continue;
        const ps when = start + times_.duration[hop];
        const int trees = room_.trees_at(npu);
        if (std::tie(when, trees) < std::tie(best.arrival, best.trees) || best.hop < 0) {
            best.arrival = when;
            best.trees = trees;
            best.hop = hop;
        }
    }
    return best;
}

// When a hop can start in a tree, at the soonest; a link sends one chunk after the other.
ps ForestGrower::start_of(int tree, std::int32_t hop) {
    const ps soonest = arrival(tree, hops_.src[hop]);
    if (in_step_) return start_in_step(soonest, hop);
    const auto group = hops_.steps[hop][0];
    const auto links = static_cast<ps>(hops_.bundles[group].size());
    return soonest + sent_[cell(tree, groups_, group)] * held_[group] / links;
}

ps ForestGrower::start_in_step(ps soonest, std::int32_t hop) const {
    const auto begin = hops_.steps.offsets[hop], end = hops_.steps.offsets[hop + 1];
    const ps held = held_[hops_.steps.items[begin]];
    const ps first = rota_.snapped(soonest, held);
    ps start = first;
    for (auto i = begin; i < end;) {
        const auto hold = times_.holds[i];
        const auto bundle = hops_.steps.items[i];
        ps free = never;
        for (auto s = hops_.bundles.offsets[bundle]; s < hops_.bundles.offsets[bundle + 1]; ++s)
            free = std::min(free, rota_.first_free(s, start + hold.offset, hold.length));
        if (free == never) return never;
        const ps next = rota_.snapped(free - hold.offset, held);
        if (next - first >= rota_.slot()) return never;
        i = next == start ? i + 1 : begin;
        start = next;
    }
    return start;
}

void ForestGrower::join(Forest& forest, const Offer& offer_) {
    const auto [when, trees, chance, tree, group, hop] = offer_;
    Branch branch{hop, when - times_.duration[hop], {}};
    take_links(branch);
    arrival(tree, hops_.dst[hop]) = when;
    ++sent_[cell(tree, groups_, group)];
    room_.join(tree, hop);
    forest.trees[tree].push_back(std::move(branch));
    offer(tree, hops_.dst[hop]);
}

void ForestGrower::take_links(Branch& branch) {
    const auto hop = branch.hop;
    for (auto bundle : hops_.steps[hop]) {
        if (in_step_) break;
        const auto links = hops_.bundles[bundle];
        branch.links.push_back(links[turn_[bundle]++ % links.size()]);
    }
    if (!in_step_) return;
    for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i) {
        const auto hold = times_.holds[i];
        const ps begin = branch.start + hold.offset;
        auto link = hops_.bundles.offsets[hops_.steps.items[i]];
        while (rota_.first_free(link, begin, hold.length) != begin) ++link;
        rota_.take(link, begin, hold.length);
        branch.links.push_back(hops_.bundles.items[link]);
    }
}

// Drops branches that lead to relays only.
void ForestGrower::prune(Forest& forest, int tree) {
    std::vector<bool> needed(is_member_);
    auto& branches = forest.trees[tree];
    std::vector<Branch> kept;
    for (auto branch = branches.rbegin(); branch != branches.rend(); ++branch) {
        const auto npu = hops_.dst[branch->hop];
        if (!needed[npu]) continue;
        needed[hops_.src[branch->hop]] = true;
        forest.depth[tree] = std::max(forest.depth[tree], arrival(tree, npu));
        kept.push_back(std::move(*branch));
    }
    branches.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

}  // namespace weft
