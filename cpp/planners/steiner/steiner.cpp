#include "planners/steiner/steiner.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/parallel.h"
#include "planners/race.h"
#include "planners/steiner/partners.h"
#include "planners/steiner/trees.h"
#include "planners/tree_tasks.h"

namespace weft {
namespace {

constexpr int most_passes = 8;
constexpr int patience = 2;  // passes in a row that may gain nothing
// Hops looked at, after which no further pass is begun.
constexpr std::int64_t most_looks = std::int64_t{1} << 25;

// What depth costs, see `Loads`. Shallow trees fill the pipeline soon, deep ones spread the load:
// which matters more depends on the network and the number of chunks.
constexpr std::array depth_prices = {1.0, 0.3, 0.1};
// Where chunks (sums count for four) times hops are more than this, only the first is tried.
constexpr std::size_t small = std::size_t{1} << 19;

// How steep prices get once passes gain nothing; of trees that only must load links evenly, from
// which pass on they are scheduled, to which, and what their depth costs.
constexpr int steeper = 2, steep = 3, steepest = 6;
constexpr double low_depth_price = 0.01;

// Nothing more than a few thousandths to gain.
ps close_to(ps bound) { return bound + bound / 512; }

// Passes of routing with one price for depth, each followed by scheduling; the best is kept.
class SteinerAttempt {
  public:
    SteinerAttempt(const Hops& hops, std::span<const HopTimes> times, const Chunks& chunks,
                   const Sizes& sizes, const Search& search, double depth_price, int threads)
        : hops_(hops), times_(times), chunks_(chunks), bound_(search.goal), threads_(threads),
          progress_(search.progress), router_(hops, times, chunks, sizes, depth_price, search),
          tree_tasks_(hops) {}

    Schedule run() {
        int squarings = 0;
        for (int pass = 0, in_vain = 0; pass < most_passes && in_vain < patience; ++pass) {
            router_.steepen(squarings);
            if (!router_.pass()) return {};
            const ps before = best_.time;
            schedule_trees();
            if (best_.time <= close_to(bound_) || router_.looks() > most_looks) break;
            in_vain = best_.time < before - before / 512 ? 0 : in_vain + 1;
            if (in_vain == patience && squarings < steeper) --in_vain, squarings = steeper;
        }
        return std::move(best_);
    }

    // Prices steepen from pass to pass, so that what counts in the end is the busiest link alone;
    // the last passes are scheduled.
    Schedule run_steadily() {
        for (int pass = 0; pass <= steepest; ++pass) {
            router_.steepen(pass);
            if (!router_.pass()) return {};
            if (pass < steep) continue;
            schedule_trees();
            if (best_.time <= close_to(bound_)) break;
        }
        return std::move(best_);
    }

  private:
    void schedule_trees() {
        tasks_ = {};
        turn_.clear();
        add_all_chunks();
        const auto tails = tasks_.tails(times_);
        router_.set_idle(idle(tails));
        std::vector<Schedule> found(eagerness_.size());
        in_parallel(found.size(), threads_, [&](std::size_t i) {
            auto priority = tails;
            const double apart = eagerness_[i] * router_.busiest();
            for (std::size_t task = 0; task < priority.size(); ++task)
                priority[task] -= static_cast<ps>(apart * turn_[task]);
            found[i] = list_schedule(hops_, times_, tasks_, priority, progress_);
        });
        const auto shortest = std::min_element(found.begin(), found.end(),
                                               [](auto& a, auto& b) { return a.time < b.time; });
        eagerness_ = {eagerness_[shortest - found.begin()]};  // which serves, the first pass shows
        if (shortest->time < best_.time) best_ = std::move(*shortest);
    }

    void add_all_chunks() {
        const auto& classes = router_.classes();
        std::vector<std::pair<std::size_t, std::size_t>> places(chunks_.bytes.size());
        for (std::size_t c = 0; c < classes.size(); ++c)
            for (std::size_t k = 0; k < classes[c].chunks.size(); ++k)
                places[classes[c].chunks[k]] = {c, k};
        for (std::size_t chunk = 0; chunk < places.size(); ++chunk) {
            const auto [c, k] = places[chunk];
            const auto& tree = router_.tree(c, k);
            tree_tasks_.add(tasks_, tree.up, tree.down, static_cast<std::int32_t>(chunk),
                            classes[c].size);
            turn_.resize(tasks_.size(),
                         static_cast<double>(k) / static_cast<double>(classes[c].chunks.size()));
        }
    }

    // Per bundle: the least time before anything reaches it, and the least after what it carries.
    std::vector<double> idle(const std::vector<ps>& tails) const {
        const auto heads = tasks_.heads(times_);
        const auto bundles = static_cast<std::size_t>(hops_.bundles.size());
        std::vector<ps> before(bundles, never), after(bundles, never);
        for (std::int32_t task = 0; task < tasks_.size(); ++task) {
            const auto hop = tasks_[task].hop;
            const ps rest = tails[task] - times_[tasks_[task].size].duration[hop];
            for (auto bundle : hops_.steps[hop]) {
                before[bundle] = std::min(before[bundle], heads[task]);
                after[bundle] = std::min(after[bundle], rest);
            }
        }
        std::vector<double> result(bundles, 0);
        for (std::size_t b = 0; b < bundles; ++b)
            if (before[b] != never) result[b] = static_cast<double>(before[b] + after[b]);
        return result;
    }

    const Hops& hops_;
    std::span<const HopTimes> times_;
    const Chunks& chunks_;
    const ps bound_;
    const int threads_;
    Progress& progress_;
    SteinerRouter router_;
    // How far apart a class's first and last chunk are in priority, over the time of the busiest
    // link. Without it all sums would be finished before the first result is spread, and links idle
    // that only spread; with too much of it, chunks with a long way to go start too late.
    std::vector<double> eagerness_{0.0, 0.5, 1.0};
    TreeTasks tree_tasks_;
    Tasks tasks_;
    std::vector<double> turn_;  // per task: the chunk's place among those of its class, in [0, 1)
    Schedule best_;
};

}  // namespace

Schedule plan_steiner(const Hops& hops, std::span<const HopTimes> times, const Chunks& chunks,
                      const Sizes& sizes, const Search& search) {
    const auto sums = static_cast<std::size_t>(
        std::count(chunks.reduce.begin(), chunks.reduce.end(), std::uint8_t{1}));
    const auto work = (chunks.bytes.size() + 3 * sums) * static_cast<std::size_t>(hops.count());
    const std::size_t attempts = work > small ? 1 : depth_prices.size();
    Schedule best =
        first_or_best(attempts, search.threads, close_to(search.goal), [&](std::size_t i) {
            const int own_threads = attempts == 1 ? search.threads : 1;
            return SteinerAttempt(hops, times, chunks, sizes, search, depth_prices[i], own_threads)
                .run();
        });
    if (search.progress.cancelled) throw Cancelled();
    return best;
}

Schedule plan_steady(const Network&, const Hops& hops, const HopTimes& times, const Chunks& chunks,
                     const Search& search) {
    const Sizes alike{{chunks.largest()}, std::vector<std::int32_t>(chunks.size(), 0)};
    const auto planned = [&](const Hops& over, const HopTimes& cost) {
        SteinerAttempt attempt(over, {&cost, 1}, chunks, alike, search, low_depth_price,
                               search.threads);
        Schedule found = attempt.run_steadily();
        if (search.progress.cancelled) throw Cancelled();
        return found;
    };
    const auto kept = hops_to_partners(hops);
    if (static_cast<std::int32_t>(kept.size()) < hops.count()) {
        Schedule found = planned(only(hops, kept), only(hops, times, kept));
        for (auto& hop : found.hop) hop = kept[hop];
        if (found.time != never) return found;
    }
    return planned(hops, times);
}

}  // namespace weft
