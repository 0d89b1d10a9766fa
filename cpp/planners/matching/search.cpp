#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>

#include "base/parallel.h"
#include "base/random.h"
#include "bounds/cuts.h"
#include "planners/matching/matching.h"
#include "planners/race.h"

namespace weft {
namespace {

// How long a hop holds its slowest link: the inverse of its speed.
std::vector<ps> slowness(const Hops& hops, const HopTimes& times) {
    std::vector<ps> result(hops.count(), 0);
    for (std::int32_t h = 0; h < hops.count(); ++h)
        for (auto i = hops.steps.offsets[h]; i < hops.steps.offsets[h + 1]; ++i)
            result[h] = std::max(result[h], times.holds[i].length);
    return result;
}

std::int32_t root(std::vector<std::int32_t>& parent, std::int32_t npu) {
    while (parent[npu] != npu) npu = parent[npu] = parent[parent[npu]];
    return npu;
}

Regions joined_by(const Hops& hops, const std::vector<ps>& slow, ps slowest) {
    std::vector<std::int32_t> parent(hops.out.size());
    std::iota(parent.begin(), parent.end(), 0);
    for (std::int32_t h = 0; h < hops.count(); ++h)
        if (slow[h] <= slowest) parent[root(parent, hops.src[h])] = root(parent, hops.dst[h]);
    Regions regions{std::vector<std::int32_t>(parent.size()), std::vector<bool>(hops.count())};
    std::vector<std::int32_t> number(parent.size(), -1);
    std::int32_t count = 0;
    for (std::int32_t npu = 0; npu < hops.out.size(); ++npu) {
        auto& known = number[root(parent, npu)];
        if (known < 0) known = count++;
        regions.of[npu] = known;
    }
    for (std::int32_t h = 0; h < hops.count(); ++h) regions.crossed_by[h] = slow[h] > slowest;
    return regions;
}

// Whether every one of these NPUs reaches every other over hops between them alone.
bool is_joined(const Hops& hops, std::span<const std::int32_t> npus) {
    std::vector<bool> inside(hops.out.size(), false);
    for (auto npu : npus) inside[npu] = true;
    auto reaches_all = [&](const Rows& next, const std::vector<std::int32_t>& end) {
        std::vector<bool> seen(hops.out.size(), false);
        std::vector<std::int32_t> queue{npus.front()};
        seen[npus.front()] = true;
        for (std::size_t i = 0; i < queue.size(); ++i)
            for (auto hop : next[queue[i]]) {
                const auto npu = end[hop];
                if (!inside[npu] || seen[npu]) continue;
                seen[npu] = true;
                queue.push_back(npu);
            }
        return queue.size() == npus.size();
    };
    return npus.empty() || (reaches_all(hops.out, hops.dst) && reaches_all(hops.in, hops.src));
}

// One division for each clear step between link speeds, the coarsest first: NPUs joined by the
// faster hops belong together, and the slower ones are for crossing, even those that end where
// they began. Divisions into one region, or into single NPUs, are left out.
std::vector<Regions> regions_by_speed(const Hops& hops, const HopTimes& times) {
    const auto slow = slowness(hops, times);
    auto levels = slow;
    std::sort(levels.begin(), levels.end());
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    std::vector<Regions> divisions;
    for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
        if (levels[i + 1] < levels[i] + levels[i] / 2) continue;
        auto regions = joined_by(hops, slow, levels[i]);
        if (regions.count() > 1 && regions.count() < hops.out.size())
            divisions.push_back(std::move(regions));
    }
    std::reverse(divisions.begin(), divisions.end());
    return divisions;
}

// The two sides of the tightest cut, by how many chunks start on each NPU (`supply`) and who must
// get them; none if no cut is tighter than an NPU's own links, which need `known` seconds.
std::vector<Regions> regions_by_cut(const Network& network, const Hops& hops,
                                    const std::vector<double>& supply_bytes,
                                    const std::vector<std::int32_t>& takers, double known) {
    constexpr std::int64_t budget = 20'000'000;
    std::vector<double> supply(network.nodes(), 0);
    std::copy(supply_bytes.begin(), supply_bytes.end(), supply.begin());
    const auto cut = tightest_cut(network, supply, takers, known, budget);
    if (cut.inside.empty()) return {};
    Regions regions;
    for (std::int32_t npu = 0; npu < network.npus; ++npu) regions.of.push_back(cut.inside[npu]);
    for (std::int32_t h = 0; h < hops.count(); ++h)
        regions.crossed_by.push_back(regions.of[hops.src[h]] != regions.of[hops.dst[h]]);
    return {regions};
}

class Attempts {
  public:
    Attempts(const Network& network, const Hops& hops, const HopTimes& times, const Chunks& chunks,
             const Search& search)
        : network_(network), hops_(hops), times_(times), chunks_(chunks), bound_(search.goal),
          threads_(search.threads), seed_(search.seed), progress_(search.progress),
          one_speed_(std::ranges::all_of(
              times.duration, [&](ps duration) { return duration == times.duration.front(); })) {}

    Schedule run() {
        // Keeping the order of hops is kind to caches; with one speed it hardly matters.
        std::vector<MatchOptions> options;
        if (!hops_.single_links)
            options.push_back(
                {.seed = seed_, .rotate = true, .shuffle = !one_speed_, .regions = {}});
        options.push_back({.seed = seed_, .shuffle = !one_speed_, .regions = {}});
        keep_best_of(options);
        if (!close()) try_alone(options);
        if (!close_to(32) && can_wait()) try_patience(options.back());
        if (!close()) try_regions(options);
        if (!close() && !one_speed_) sweep_targets();
        if (!close_to(32)) try_orders();
        return std::move(best_);
    }

  private:
    // Nothing more than that part of the bound to gain, or nothing to be had at all.
    bool close_to(ps part) const {
        return best_.time <= bound_ + bound_ / part || best_.time == never;
    }
    bool close() const { return close_to(512); }

    // A run takes about so long, in tens of nanoseconds.
    std::size_t work() const { return static_cast<std::size_t>(hops_.count()) * chunks_.size(); }
    bool is_large() const { return work() > 1 << 21; }

    // Groups that relay for each other fill links with what the others do not need. Where the
    // takers of a chunk can pass it on among themselves, keep it to them.
    void try_alone(std::vector<MatchOptions> options) {
        alone_reach_.assign(chunks_.reach.begin(), chunks_.reach.end());
        alone_ = chunks_;
        alone_.reach = alone_reach_;
        bool any = false;
        for (std::int32_t chunk = 0; chunk < chunks_.size(); ++chunk) {
            if (chunks_.reach[chunk] >= 0 || !can_be_alone(chunk)) continue;
            alone_reach_[chunk] = chunks_.post[chunk];
            any = true;
        }
        if (!any) return;
        for (auto& option : options) option.alone = true;
        keep_best_of(options);
    }
    bool can_be_alone(std::int32_t chunk) {
        const auto number = chunks_.post[chunk];
        const auto takers = chunks_.sets[number];
        if (static_cast<std::int32_t>(takers.size()) == network_.npus) return false;
        const auto [known, is_new] = joined_.try_emplace(number, false);
        if (is_new) known->second = is_joined(hops_, takers);
        return known->second &&
               std::all_of(chunks_.holders(chunk).begin(), chunks_.holders(chunk).end(),
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
        keep_best_of({option});
    }
    bool can_wait() const {
        for (std::int32_t hop = 0; hops_.single_links && hop < hops_.count(); ++hop)
            if (times_.holds[hop].length < times_.duration[hop]) return true;
        return false;
    }

    // Small plans are cheap to make again, with the hops tried in other orders.
    void try_orders() {
        constexpr std::size_t most_tries = 16, most_work = 1 << 18;
        Random random(seed_);
        std::vector<MatchOptions> tries(std::min(most_tries, most_work / (work() + 1)),
                                        best_options_);
        for (auto& option : tries) {
            option.seed = random();
            option.shuffle = true;
        }
        keep_best_of(tries);
    }

    // Each division alone, strictly and loosely, and those by speed one within the other.
    void try_regions(const std::vector<MatchOptions>& options) {
        divisions_ = regions_by_speed(hops_, times_);
        const auto nested = divisions_.size();
        for (auto& sides : regions_by_cut(network_, hops_, supply(), takers(),
                                          static_cast<double>(bound_) * 1e-12))
            divisions_.push_back(std::move(sides));
        std::vector<MatchOptions> divided;
        auto add = [&](const std::vector<const Regions*>& regions, bool strict) {
            for (auto option : is_large() ? std::vector{best_options_} : options) {
                option.patient = best_options_.patient;
                option.alone = best_options_.alone;
                option.regions = regions;
                option.strict = strict;
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
                guarded.push_back(option);
            }
        keep_best_of(guarded);
    }

    // How often a chunk must reach a taker; those that hold it from the start are few.
    std::int64_t deliveries() const {
        std::int64_t sum = 0;
        for (auto set : chunks_.post) sum += static_cast<std::int64_t>(chunks_.sets[set].size());
        return sum;
    }
    std::vector<double> supply() const {
        const auto bytes = static_cast<double>(chunks_.largest());
        std::vector<double> result(network_.npus, 0);
        for (std::int32_t chunk = 0; chunk < chunks_.size(); ++chunk)
            if (chunks_.holders(chunk).size() == 1) result[chunks_.holders(chunk)[0]] += bytes;
        return result;
    }
    std::vector<std::int32_t> takers() const {
        const auto set = chunks_.sets[chunks_.post.empty() ? 0 : chunks_.post[0]];
        return {set.begin(), set.end()};
    }

    // Runs every option set and keeps the best schedule: the shortest, then the first in order.
    // Once one meets the bound, those behind it cannot win and are skipped; so that nothing
    // depends on which of them ran, none counts for less than the bound.
    void keep_best_of(std::vector<MatchOptions> options) {
        for (auto& option : options) option.limit = best_.time - 1;
        progress_.begin(static_cast<std::int64_t>(options.size()) * deliveries());
        std::vector<Schedule> found(options.size());
        std::atomic<std::size_t> met{options.size()};
        std::atomic<ps> shortest{best_.time};
        in_parallel(options.size(), threads_, [&](std::size_t i) {
            if (i > met) return;
            const auto& times = options[i].patient ? patient_ : times_;
            const auto& chunks = options[i].alone ? alone_ : chunks_;
            Schedule schedule = match(hops_, times, chunks, options[i], progress_);
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
    const Chunks& chunks_;
    const ps bound_;
    const int threads_;
    const std::uint64_t seed_;
    Progress& progress_;
    const bool one_speed_;
    HopTimes patient_;  // with links held until what they bring has arrived
    std::vector<std::int32_t> alone_reach_;
    Chunks alone_;  // with chunks kept to their takers, where these are joined
    std::map<std::int32_t, bool> joined_;  // by set of takers
    std::vector<Regions> divisions_;
    Schedule best_;
    MatchOptions best_options_;
};

}  // namespace

Schedule search_matching(const Network& network, const Hops& hops, const HopTimes& times,
                         const Chunks& chunks, const Search& search) {
    return Attempts(network, hops, times, chunks, search).run();
}

}  // namespace weft
