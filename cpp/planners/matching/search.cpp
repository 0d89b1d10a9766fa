#include <algorithm>
#include <atomic>
#include <map>

#include "base/parallel.h"
#include "base/random.h"
#include "planners/matching/matching.h"
#include "planners/race.h"

namespace weft {
namespace {

class Search {
  public:
    Search(const Network& network, const Hops& hops, const HopTimes& times, const Spread& spread,
           ps bound, int threads, Progress& progress)
        : network_(network), hops_(hops), times_(times), spread_(spread), bound_(bound),
          threads_(threads), progress_(progress), one_speed_(is_one_speed(times)) {}

    Schedule run(std::int64_t bytes, std::uint64_t seed) {
        // Keeping the order of hops is kind to caches; with one speed it hardly matters.
        std::vector<MatchOptions> options;
        if (!hops_.single_links)
            options.push_back(
                {.seed = seed, .rotate = true, .shuffle = !one_speed_, .regions = {}});
        options.push_back({.seed = seed, .shuffle = !one_speed_, .regions = {}});
        keep_best_of(options);
        if (!close()) try_alone(options);
        if (!close_to(32) && can_wait()) try_patience(options.back());
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

    // A run takes about so long, in tens of nanoseconds.
    std::size_t work() const { return static_cast<std::size_t>(hops_.count()) * spread_.chunks(); }
    bool is_large() const { return work() > 1 << 21; }

    // Groups that relay for each other fill links with what the others do not need. Where the
    // takers of a chunk can pass it on among themselves, keep it to them.
    void try_alone(std::vector<MatchOptions> options) {
        alone_ = spread_;
        bool any = false;
        for (std::int32_t chunk = 0; chunk < spread_.chunks(); ++chunk) {
            if (spread_.reach[chunk] >= 0 || !can_be_alone(chunk)) continue;
            alone_.reach[chunk] = spread_.takers[chunk];
            any = true;
        }
        if (!any) return;
        for (auto& option : options) {
            option.alone = true;
            option.limit = best_.time - 1;
        }
        keep_best_of(options);
    }
    bool can_be_alone(std::int32_t chunk) {
        const auto number = spread_.takers[chunk];
        const auto takers = spread_.sets[number];
        if (static_cast<std::int32_t>(takers.size()) == network_.npus) return false;
        const auto [known, is_new] = joined_.try_emplace(number, false);
        if (is_new) known->second = is_joined(hops_, takers);
        return known->second &&
               std::all_of(spread_.holders[chunk].begin(), spread_.holders[chunk].end(),
                           [&](auto npu) {
                               return std::find(takers.begin(), takers.end(), npu) != takers.end();
                           });
    }

    // Where α does not block, a link is free a little before what it brought can be passed on, and
    // the next send takes what there is instead of what is best. Waiting costs α a hop; pushing
    // together wins most of it back. Behind switches it was never seen to help.
    void try_patience(MatchOptions option) {
        patient_ = times_;
        for (std::int32_t hop = 0; hop < hops_.count(); ++hop)
            patient_.holds[hop].length = times_.duration[hop];
        option.patient = true;
        option.alone = best_options_.alone;
        option.limit = best_.time - 1;
        keep_best_of({option});
    }
    bool can_wait() const {
        for (std::int32_t hop = 0; hops_.single_links && hop < hops_.count(); ++hop)
            if (times_.holds[hop].length < times_.duration[hop]) return true;
        return false;
    }

    // Small plans are cheap to make again, with the hops tried in other orders.
    void try_orders(std::uint64_t seed) {
        constexpr std::size_t most_tries = 16, most_work = 1 << 18;
        Random random(seed);
        std::vector<MatchOptions> tries(std::min(most_tries, most_work / (work() + 1)),
                                        best_options_);
        for (auto& option : tries) {
            option.seed = random();
            option.shuffle = true;
            option.limit = best_.time - 1;
        }
        keep_best_of(tries);
    }

    // Each division alone, strictly and loosely, and those by speed one within the other.
    void try_regions(const std::vector<MatchOptions>& options, std::int64_t bytes) {
        divisions_ = regions_by_speed(hops_, times_);
        const auto nested = divisions_.size();
        for (auto& sides : regions_by_cut(network_, hops_, supply(bytes), takers(),
                                          static_cast<double>(bound_) * 1e-12))
            divisions_.push_back(std::move(sides));
        std::vector<MatchOptions> divided;
        auto add = [&](const std::vector<const Regions*>& regions, bool strict) {
            for (auto option : is_large() ? std::vector{best_options_} : options) {
                option.patient = best_options_.patient;
                option.alone = best_options_.alone;
                option.regions = regions;
                option.strict = strict;
                option.limit = best_.time - 1;
                divided.push_back(std::move(option));
            }
        };
        std::vector<const Regions*> all;
        for (std::size_t i = 0; i < divisions_.size(); ++i) {
            add({&divisions_[i]}, true);
            add({&divisions_[i]}, false);
            if (i < nested) all.push_back(&divisions_[i]);
        }
        if (nested > 1) add(all, true);
        keep_best_of(divided);
    }

    // Eighths of the way from the bound to what was reached without a target. Where regions are
    // kept strictly, slow hops are few anyway: so loosely too. Large plans get two targets.
    void sweep_targets() {
        constexpr int steps = 8;
        std::vector<MatchOptions> bases{best_options_}, guarded;
        if (best_options_.strict && !is_large()) {
            bases.push_back(best_options_);
            bases.back().strict = false;
        }
        for (auto option : bases)
            for (int step = 0; step < steps; step += is_large() ? steps / 2 : 1) {
                option.target = bound_ + (best_.time - bound_) / steps * step;
                option.limit = best_.time - 1;
                guarded.push_back(option);
            }
        keep_best_of(guarded);
    }

    // How often a chunk must reach a taker; those that hold it from the start are few.
    std::int64_t deliveries() const {
        std::int64_t sum = 0;
        for (auto set : spread_.takers) sum += static_cast<std::int64_t>(spread_.sets[set].size());
        return sum;
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
        progress_.begin(static_cast<std::int64_t>(options.size()) * deliveries());
        std::vector<Schedule> found(options.size());
        std::atomic<std::size_t> met{options.size()};
        std::atomic<ps> shortest{best_.time};
        in_parallel(options.size(), threads_, [&](std::size_t i) {
            if (i > met) return;
            const auto& times = options[i].patient ? patient_ : times_;
            const auto& spread = options[i].alone ? alone_ : spread_;
            Schedule schedule = match(hops_, times, spread, options[i], progress_);
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

    const Network& network_;
    const Hops& hops_;
    const HopTimes& times_;
    const Spread& spread_;
    const ps bound_;
    const int threads_;
    Progress& progress_;
    const bool one_speed_;
    HopTimes patient_;  // with links held until what they bring has arrived
    Spread alone_;      // with chunks kept to their takers, where these are joined
    std::map<std::int32_t, bool> joined_;  // by set of takers
    std::vector<Regions> divisions_;
    Schedule best_;
    MatchOptions best_options_;
};

}  // namespace

Schedule search(const Network& network, const Hops& hops, const HopTimes& times,
                const Spread& spread, std::int64_t bytes, std::uint64_t seed, ps bound, int threads,
                Progress& progress) {
    return Search(network, hops, times, spread, bound, threads, progress).run(bytes, seed);
}

}  // namespace weft
