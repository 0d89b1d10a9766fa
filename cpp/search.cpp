#include <algorithm>
#include <atomic>

#include "matching.h"
#include "parallel.h"
#include "random.h"

namespace weft {
namespace {

class Search {
  public:
    Search(const Network& network, const Hops& hops, const HopTimes& times, const Spread& spread,
           ps bound, int threads, Progress& progress)
        : network_(network), hops_(hops), times_(times), spread_(spread), bound_(bound),
          threads_(threads), progress_(progress), one_speed_(is_one_speed(times)),
          patient_(until_arrival(hops, times)) {}

    Schedule run(std::int64_t bytes, std::uint64_t seed) {
        // Keeping the order of hops is kind to caches; with one speed it hardly matters.
        std::vector<MatchOptions> options;
        if (!hops_.single_links)
            options.push_back({.seed = seed, .rotate = true, .shuffle = !one_speed_});
        options.push_back({.seed = seed, .shuffle = !one_speed_});
        keep_best_of(options);
        if (!close_to(32) && can_wait()) try_patience(options);
        if (!close()) try_regions(options, bytes);
        if (!close() && !one_speed_) sweep_targets();
        if (!close_to(32)) try_orders(seed);
        return std::move(best_);
    }

  private:
    // Nothing more than that part of the bound to gain, or nothing to be had at all.
    bool close_to(ps part) const {
        return best_.time <= bound_ + bound_ / part || best_.time == never;
    }
    bool close() const { return close_to(512); }

    // Where α does not block, a link is free a little before what it brought can be passed on, and
    // the next takes what there is instead of what is best. Waiting costs α a hop; pushing together
    // wins most of it back.
    bool can_wait() const {
        return !std::equal(times_.holds.begin(), times_.holds.end(), patient_.holds.begin(),
                           [](Hold a, Hold b) { return a.length == b.length; });
    }
    static HopTimes until_arrival(const Hops& hops, HopTimes times) {
        for (std::int32_t h = 0; h < hops.count(); ++h) {
            const auto first = times.holds.begin() + hops.steps.offsets[h];
            const auto last = times.holds.begin() + hops.steps.offsets[h + 1];
            const ps longest =
                std::max_element(first, last, [](Hold a, Hold b) { return a.length < b.length; })
                    ->length;
            const ps duration = times.duration[h];
            for (auto hold = first; hold != last; ++hold)
                hold->length = std::min(hold->length + duration - longest, duration - hold->offset);
        }
        return times;
    }
    void try_patience(const std::vector<MatchOptions>& options) {
        auto waiting = options;
        for (auto& option : waiting) {
            option.patient = true;
            option.limit = best_.time - 1;
        }
        keep_best_of(waiting);
    }

    // Small plans are cheap to make again, with the hops tried in other orders.
    void try_orders(std::uint64_t seed) {
        constexpr std::size_t most_tries = 16, most_work = 1 << 18;
        const auto work = static_cast<std::size_t>(hops_.count()) * spread_.chunks();
        Random random(seed);
        std::vector<MatchOptions> tries(std::min(most_tries, most_work / (work + 1)),
                                        best_options_);
        for (auto& option : tries) {
            option.seed = random();
            option.shuffle = true;
            option.limit = best_.time - 1;
        }
        keep_best_of(tries);
    }

    void try_regions(const std::vector<MatchOptions>& options, std::int64_t bytes) {
        divisions_ = regions_by_speed(hops_, times_);
        for (auto& sides : regions_by_cut(network_, supply(bytes), takers(),
                                          static_cast<double>(bound_) * 1e-12))
            divisions_.push_back(std::move(sides));
        std::vector<MatchOptions> divided;
        for (const auto& regions : divisions_)
            for (auto option : options) {
                option.regions = &regions;
                option.patient = best_options_.patient;
                option.limit = best_.time - 1;
                divided.push_back(option);
            }
        keep_best_of(divided);
    }

    // Eighths of the way from the bound to what was reached without a target.
    void sweep_targets() {
        constexpr int steps = 8;
        std::vector<MatchOptions> guarded;
        for (int step = 0; step < steps; ++step) {
            auto option = best_options_;
            option.target = bound_ + (best_.time - bound_) / steps * step;
            option.limit = best_.time - 1;
            guarded.push_back(option);
        }
        keep_best_of(guarded);
    }

    std::vector<double> supply(std::int64_t bytes) const {
        std::vector<double> result(network_.npus, 0);
        for (std::int32_t chunk = 0; chunk < spread_.chunks(); ++chunk)
            if (spread_.holders[chunk].size() == 1)
                result[spread_.holders[chunk][0]] += static_cast<double>(bytes);
        return result;
    }
    std::vector<std::int32_t> takers() const {
        const auto set = spread_.sets[spread_.takers.empty() ? 0 : spread_.takers[0]];
        return {set.begin(), set.end()};
    }

    // Runs every option set and keeps the best schedule: the shortest, then the first in order.
    // Once one meets the bound, those behind it cannot win and are skipped; so that nothing
    // depends on which of them ran, none counts for less than the bound.
    void keep_best_of(const std::vector<MatchOptions>& options) {
        std::vector<Schedule> found(options.size());
        std::atomic<std::size_t> met{options.size()};
        std::atomic<ps> shortest{best_.time};
        in_parallel(options.size(), threads_, [&](std::size_t i) {
            if (i > met) return;
            const auto& times = options[i].patient ? patient_ : times_;
            Schedule schedule = match(hops_, times, spread_, options[i], progress_);
            const ps time = std::max(schedule.time, bound_);
            if (time == bound_) lower(met, i);
            lower(shortest, time);
            if (time == shortest) found[i] = std::move(schedule);
        });
        if (progress_.cancelled) throw Cancelled();
        for (std::size_t i = 0; i < options.size(); ++i)
            if (std::max(found[i].time, bound_) < best_.time) {
                best_ = std::move(found[i]);
                best_options_ = options[i];
            }
    }

    template <class T>
    static void lower(std::atomic<T>& least, T value) {
        for (T seen = least; value < seen && !least.compare_exchange_weak(seen, value);) {}
    }

    const Network& network_;
    const Hops& hops_;
    const HopTimes& times_;
    const Spread& spread_;
    const ps bound_;
    const int threads_;
    Progress& progress_;
    const bool one_speed_;
    const HopTimes patient_;  // what links are held for if hops wait for what they bring
    std::vector<Regions> divisions_;
    Schedule best_;
    MatchOptions best_options_;
};

}  // namespace

Schedule search(const Network& network, const Hops& hops, const HopTimes& times,
                const Spread& spread, std::int64_t bytes, std::uint64_t seed, ps bound,
                int threads, Progress& progress) {
    return Search(network, hops, times, spread, bound, threads, progress).run(bytes, seed);
}

}  // namespace weft
