#include <algorithm>
#include <atomic>
#include <thread>

#include "matching.h"

namespace weft {
namespace {

// Runs every option set and returns the best schedule: the shortest, then the first in order.
// Once one meets the bound, those behind it cannot win and are skipped.
Schedule best_of(const Hops& hops, const HopTimes& times, const Spread& spread,
                 const std::vector<MatchOptions>& options, ps bound, int threads,
                 Progress& progress) {
    struct Found {
        Schedule schedule;
        std::size_t index = ~std::size_t{0};
    };
    std::vector<Found> found(std::max(1, std::min<int>(threads, static_cast<int>(options.size()))));
    std::atomic<std::size_t> next{0}, met{options.size()};
    auto work = [&](Found& mine) {
        for (std::size_t i; (i = next++) < options.size() && i < met;) {
            Schedule schedule = match(hops, times, spread, options[i], progress);
            if (schedule.time > bound) {
                if (schedule.time >= mine.schedule.time) continue;
            } else {
                for (auto seen = met.load(); i < seen && !met.compare_exchange_weak(seen, i);) {}
                if (mine.schedule.time <= schedule.time) continue;
            }
            mine = {std::move(schedule), i};
        }
    };
    std::vector<std::thread> pool;
    for (std::size_t t = 1; t < found.size(); ++t) pool.emplace_back(work, std::ref(found[t]));
    work(found[0]);
    for (auto& thread : pool) thread.join();
    auto best = std::min_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
        return a.schedule.time != b.schedule.time ? a.schedule.time < b.schedule.time
                                                  : a.index < b.index;
    });
    return std::move(best->schedule);
}

}  // namespace

Schedule search(const Hops& hops, const HopTimes& times, const Spread& spread, std::uint64_t seed,
                int trials, ps bound, int threads, Progress& progress) {
    std::vector<MatchOptions> options;
    for (int trial = 0; trial < trials; ++trial) {
        const auto trial_seed = seed + static_cast<std::uint64_t>(trial);
        if (!hops.single_links) options.push_back({.seed = trial_seed, .rotate = true});
        options.push_back({.seed = trial_seed});
    }
    Schedule best = best_of(hops, times, spread, options, bound, threads, progress);
    if (progress.cancelled) throw Cancelled();
    const ps close = bound + bound / 4096;
    if (best.time <= close || best.time == never || is_one_speed(times)) return best;

    // Eighths of the way from the bound to what was reached without a target.
    constexpr int steps = 8;
    std::vector<MatchOptions> guarded;
    for (const auto& option : options)
        for (int step = 0; step < steps; ++step) {
            auto with_target = option;
            with_target.target = bound + (best.time - bound) / steps * step;
            with_target.limit = best.time - 1;
            guarded.push_back(with_target);
        }
    Schedule improved = best_of(hops, times, spread, guarded, close, threads, progress);
    if (progress.cancelled) throw Cancelled();
    return improved.time < best.time ? std::move(improved) : std::move(best);
}

}  // namespace weft
