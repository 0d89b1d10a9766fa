#include "planners/periodic/periodic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <queue>
#include <ranges>
#include <utility>

#include "base/distances.h"
#include "base/parallel.h"
#include "base/random.h"

namespace weft {
namespace {

using Phases = std::uint64_t;  // one bit a slot of the period

// Periods that are tried, and by how much links may be loaded less than fully: a longer period has
// more trees and loads links more evenly, a shorter one fills the pipeline sooner.
constexpr std::int32_t periods[] = {64, 32, 16};
constexpr double slacks[] = {1.04, 1.08};

constexpr std::int64_t a_slot = 16;  // price of a slot of waiting or travelling
constexpr double steepness = 20;     // of the price of a link, in its load over the average
constexpr double dearest = 4096;
constexpr int landmarks = 8;

std::int32_t modulo(std::int64_t slot, std::int32_t period) {
    const auto rest = static_cast<std::int32_t>(slot % period);
    return rest < 0 ? rest + period : rest;
}

// The half of the members that are nearest to the middle, as seen from some far apart.
std::vector<std::int32_t> central(const Network& net, std::span<const std::int32_t> members) {
    std::vector<std::int32_t> farthest(net.nodes(), 0);
    auto from = members[0];
    for (int i = 0; i < landmarks; ++i) {
        const auto away = distances(net, from, i % 2 == 1);
        for (auto npu : members) farthest[npu] = std::max(farthest[npu], away[npu]);
        from = *std::max_element(members.begin(), members.end(),
                                 [&](auto a, auto b) { return away[a] < away[b]; });
    }
    std::vector<std::int32_t> order(members.begin(), members.end());
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return farthest[a] < farthest[b]; });
    order.resize((order.size() + 1) / 2);
    return order;
}

// Trees for one period, each found by the cheapest ways from its root in time and in load.
class Packer {
  public:
    Packer(const PeriodicProblem& problem, const std::vector<std::int32_t>& roots,
           std::int32_t period, std::int32_t trees, std::uint64_t seed)
        : problem_(problem), net_(problem.network), roots_(roots), period_(period), trees_(trees),
          all_(period == 64 ? ~Phases{0} : (Phases{1} << period) - 1), random_(seed),
          used_(net_.links(), 0), price_(net_.links(), 0), ready_(net_.nodes()),
          start_(net_.nodes()), by_(net_.nodes()), cost_(net_.nodes()), joined_(net_.nodes()) {}

    // As many trees as find room; of these the number with which all chunks arrive first.
    PeriodicTrees pack(Progress& progress) {
        PeriodicTrees made;
        made.period = period_;
        std::pair<std::int64_t, std::size_t> best{never, 0};
        for (std::int32_t t = 0; t < trees_; ++t) {
            if (progress.cancelled) throw Cancelled();
            if (!add_tree(t, made)) break;
            ++progress.done;
            best = std::min(best, {slots_for_all(), spans_.size()});
        }
        if (spans_.empty()) return {};
        spans_.resize(best.second);
        made.slots = best.first;
        made.offsets.resize(best.second + 1);
        const auto rows = static_cast<std::size_t>(made.offsets.back());
        made.link.resize(rows);
        made.slot.resize(rows);
        made.reduce.resize(rows);
        for (auto left = problem_.chunks; auto span : spans_) {
            made.chunks.push_back(std::min(arrived(made.slots, span), left));
            left -= made.chunks.back();
        }
        return made;
    }

  private:
    struct Row {
        std::int64_t slot;
        std::int32_t link;
        bool reduce;
    };

    // A tree away from a root, and one towards it that ends when the first begins.
    bool add_tree(std::int32_t number, PeriodicTrees& made) {
        const auto root = roots_[random_.below(static_cast<std::uint32_t>(roots_.size()))];
        const std::int64_t origin = random_.below(static_cast<std::uint32_t>(period_));
        std::vector<Row> rows;
        std::int64_t first = origin, last = origin;
        for (bool up : {false, true}) {
            set_prices((number + (up ? 0.5 : 0.0)) / trees_);
            if (!grow(root, origin, up)) return false;
            for (auto npu : problem_.members) {
                if (npu == root) continue;
                rows.push_back({start_[npu], by_[npu], up});
                used_[by_[npu]] |= Phases{1} << modulo(start_[npu], period_);
                first = std::min(first, start_[npu]);
                last = std::max(last, start_[npu] + problem_.lag);
            }
        }
        std::stable_sort(rows.begin(), rows.end(),
                         [](const Row& a, const Row& b) { return a.slot < b.slot; });
        first -= modulo(first, period_);  // moved by whole periods, slots stay what they are
        spans_.push_back(last - first);
        for (const auto& row : rows) {
            made.link.push_back(row.link);
            made.slot.push_back(row.slot - first);
            made.reduce.push_back(row.reduce);
        }
        made.offsets.push_back(static_cast<std::int64_t>(made.link.size()));
        return true;
    }

    // Dijkstra's way over free slots: `ready_` is the slot from which an NPU can send on, or, `up`,
    // the slot at which it sends its sum, by which all it waits for must have arrived.
    bool grow(std::int32_t root, std::int64_t origin, bool up) {
        using Offer = std::pair<std::int64_t, std::int32_t>;
        std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
        std::fill(joined_.begin(), joined_.end(), false);
        std::fill(cost_.begin(), cost_.end(), never);
        ready_[root] = origin;
        offers.push({0, root});
        std::size_t missing = problem_.members.size();
        while (missing > 0 && !offers.empty()) {
            const auto [cost, npu] = offers.top();
            offers.pop();
            if (joined_[npu]) continue;
            joined_[npu] = true;
            --missing;
            for (auto link : (up ? net_.in : net_.out)[npu]) {
                const auto next = up ? net_.src[link] : net_.dst[link];
                if (joined_[next] || used_[link] == all_) continue;
                const auto slot =
                    up ? latest(link, ready_[npu] - problem_.lag) : earliest(link, ready_[npu]);
                const auto ready = up ? slot : slot + problem_.lag;
                const auto total = cost + a_slot * std::abs(ready - ready_[npu]) + price_[link];
                if (total >= cost_[next]) continue;
                cost_[next] = total;
                ready_[next] = ready;
                start_[next] = slot;
                by_[next] = link;
                offers.push({total, next});
            }
        }
        return missing == 0;
    }

    std::int64_t earliest(std::int32_t link, std::int64_t from) const {
        const auto phase = modulo(from, period_);
        const Phases free = ~used_[link] & all_, after = free >> phase;
        return from +
               (after != 0 ? std::countr_zero(after) : period_ - phase + std::countr_zero(free));
    }

    std::int64_t latest(std::int32_t link, std::int64_t until) const {
        const auto phase = modulo(until, period_);
        const Phases free = ~used_[link] & all_, before = free << (63 - phase);
        return until - (before != 0 ? std::countl_zero(before)
                                    : phase + period_ - (63 - std::countl_zero(free)));
    }

    // Dear are links with more load than the average of all by now: they would be full too soon.
    void set_prices(double made) {
        for (std::int32_t link = 0; link < net_.links(); ++link) {
            const double load = static_cast<double>(std::popcount(used_[link])) / period_;
            price_[link] = static_cast<std::int64_t>(
                std::min(dearest, a_slot * std::exp(steepness * (load - made))));
        }
    }

    std::int64_t arrived(std::int64_t slots, std::int64_t span) const {
        return slots < span ? 0 : (slots - span) / period_ + 1;
    }
    std::int64_t arrived(std::int64_t slots) const {
        std::int64_t sum = 0;
        for (auto span : spans_) sum += arrived(slots, span);
        return sum;
    }

    std::int64_t slots_for_all() const {
        const auto latest = *std::max_element(spans_.begin(), spans_.end()) +
                            problem_.chunks * static_cast<std::int64_t>(period_);
        return *std::ranges::partition_point(
            std::views::iota(std::int64_t{0}, latest),
            [&](std::int64_t slots) { return arrived(slots) < problem_.chunks; });
    }

    const PeriodicProblem& problem_;
    const Network& net_;
    const std::vector<std::int32_t>& roots_;
    const std::int32_t period_, trees_;
    const Phases all_;
    Random random_;
    std::vector<Phases> used_;  // per link
    std::vector<std::int64_t> price_;
    std::vector<std::int64_t> spans_;          // per tree, first send to last arrival
    std::vector<std::int64_t> ready_, start_;  // per NPU, in the tree that is growing
    std::vector<std::int32_t> by_;
    std::vector<std::int64_t> cost_;
    std::vector<bool> joined_;
};

}  // namespace

PeriodicTrees plan_periodic(const PeriodicProblem& problem, const Search& search) {
    const auto& net = problem.network;
    if (problem.members.size() < 2 || net.links() == 0) return {};
    for (bool inward : {false, true}) {
        const auto away = distances(net, problem.members[0], inward);
        for (auto npu : problem.members)
            if (away[npu] < 0) return {};
    }
    const auto roots = central(net, problem.members);
    const double load = 2.0 * static_cast<double>(problem.members.size() - 1) / net.links();
    struct Attempt {
        std::int32_t period, trees;
    };
    std::vector<Attempt> attempts;
    std::int64_t work = 0;
    for (auto period : periods)
        for (auto slack : slacks) {
            attempts.push_back({period, std::max(1, static_cast<int>(period / (load * slack)))});
            work += attempts.back().trees;
        }
    search.progress.begin(work);
    PeriodicTrees best;
    std::size_t best_number = attempts.size();
    std::mutex keeping;
    in_parallel(attempts.size(), search.threads, [&](std::size_t i) {
        const auto [period, trees] = attempts[i];
        auto made = Packer(problem, roots, period, trees, search.seed).pack(search.progress);
        if (made.slots == 0) return;
        const std::lock_guard lock(keeping);
        if (best_number < attempts.size() &&
            std::pair(made.slots, i) > std::pair(best.slots, best_number))
            return;
        best = std::move(made);
        best_number = i;
    });
    return best;
}

}  // namespace weft
