#include "planners/rooted/rooted.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/radix.h"
#include "planners/retime.h"
#include "planners/rooted/growth.h"

namespace weft {
namespace {

// Numbers of trees that are tried, and how many times farther than need be their chunks may lie
// apart: then trees can be shallower, and those in step find room; less than `apart` is for these.
constexpr int counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 56, 63, 64};
constexpr double stretches[] = {1, 1.03125, 1.0625, 1.125, 1.25, 1.5, 2, 4}, apart = 1.25;
// Plans in a row that may bring nothing; with how many other seeds one is tried, as long as that
// is little work; and when nothing more is tried.
constexpr int patience = 5, seeds = 8;
constexpr std::int64_t little_work = 1 << 17, most_work = 1 << 22;
constexpr std::int64_t most_offers = 1 << 18;  // trees times hops
// Fewer trees meet less often: they are tried too if they would take no longer than this. Of plans
// with about the same hope, those with fewer trees come first.
constexpr double close = 1.03, alike = 1.1;
// Chunks by which it is seen how much trees are in each other's way.
constexpr std::int32_t sample = 512;

// More trees than this find no common step at switches, unless all hops take the same time and
// there is room to spare.
constexpr int few_in_step = 8;

struct Plan {
    int trees;
    ps slot;
    ps hope;  // no forest of it takes less time
    double stretch;
};

std::vector<Plan> plans_of(ForestGrower& grower, std::int32_t chunks, ps goal) {
    std::vector<Plan> plans;
    for (int trees : counts) {
        if (trees > chunks || trees * grower.hops() > most_offers) break;
        const ps least = grower.slot_of(trees);
        if (least == never) continue;
        const ps turns = (chunks + trees - 1) / trees - 1;
        std::vector<std::int32_t> before;
        for (double stretch : stretches) {
            const auto slot = static_cast<ps>(static_cast<double>(least) * stretch);
            auto room = grower.capacities(slot);
            if (room == before) continue;
            before = std::move(room);
            plans.push_back({trees, slot,
                             std::max(goal, grower.least_depth(trees, slot) + turns * slot),
                             stretch});
        }
    }
    std::ranges::stable_sort(plans, {}, [](const Plan& plan) {
        return std::pair(std::floor(std::log(static_cast<double>(plan.hope)) / std::log(alike)),
                         plan.trees);
    });
    return plans;
}

// Forests that a few plans give: the best, and one with fewer trees that is not much worse.
std::vector<Forest> good_forests(ForestGrower& grower, const std::vector<Plan>& plans,
                                 std::int32_t chunks, bool in_step, Progress& progress) {
    std::vector<std::pair<ps, Forest>> found;
    ps least = never;
    int misses = 0;
    const auto begun = grower.work();
    const auto suits = [&](const Plan& plan) {
        if (!in_step) return plan.stretch == 1 || plan.stretch >= apart;
        return plan.trees <= few_in_step || (plan.stretch > 1 && grower.is_even());
    };
    progress.begin(static_cast<std::int64_t>(plans.size()));
    for (const auto& plan : plans) {
        if (progress.cancelled) throw Cancelled();
        ++progress.done;
        if (misses > patience || grower.work() - begun > most_work) break;
        if (plan.hope >= least || !suits(plan)) continue;
        std::optional<Forest> best;
        ps time = never;
        const auto before = grower.work();
        for (int i = 0; i < seeds && grower.work() - before < little_work; ++i) {
            auto forest = grower.grow(plan.trees, plan.slot, in_step);
            if (!forest) break;
            if (forest->time(chunks) >= time) continue;
            time = forest->time(chunks);
            best = std::move(forest);
            if (time <= plan.hope) break;
        }
        misses = time < least ? 0 : misses + (least != never);
        least = std::min(least, time);
        if (best) found.emplace_back(time, std::move(*best));
    }
    std::ranges::stable_sort(found, {}, [](const auto& one) { return one.second.trees.size(); });
    std::vector<Forest> good;
    for (ps last = never; auto& [time, forest] : found) {
        if (time >= last || static_cast<double>(time) > close * static_cast<double>(least))
            continue;
        if (good.size() > 1) good.pop_back();
        good.push_back(std::move(forest));
        last = time;
    }
    return good;
}

// Each tree takes its chunks slot after slot.
Schedule scheduled(const Hops& hops, const HopTimes& times, const Forest& forest,
                   std::int32_t chunks) {
    Schedule schedule;
    std::map<std::vector<std::int32_t>, std::int32_t> numbers;
    std::vector<std::vector<std::int32_t>> routes(forest.trees.size());
    for (std::size_t tree = 0; tree < forest.trees.size() && !hops.single_links; ++tree)
        for (const auto& branch : forest.trees[tree]) {
            const auto [route, is_new] = numbers.try_emplace(branch.links, schedule.routes.size());
            routes[tree].push_back(route->second);
            if (!is_new) continue;
            schedule.routes.items.insert(schedule.routes.items.end(), branch.links.begin(),
                                         branch.links.end());
            schedule.routes.close();
        }
    struct Row {
        ps start;
        std::int32_t chunk, hop, route;
    };
    std::vector<Row> rows;
    std::int32_t chunk = 0;
    forest.divide(chunks, [&](std::int32_t tree, ps begin) {
        for (std::size_t i = 0; i < forest.trees[tree].size(); ++i) {
            const auto& branch = forest.trees[tree][i];
            const auto route = hops.single_links ? -1 : routes[tree][i];
            rows.push_back({branch.start + begin, chunk, branch.hop, route});
        }
        ++chunk;
    });
    std::ranges::stable_sort(rows, {}, &Row::start);
    schedule.time = 0;
    for (const auto& row : rows) {
        schedule.add(row.chunk, row.hop, row.route, row.start);
        schedule.time = std::max(schedule.time, row.start + times.duration[row.hop]);
    }
    return schedule;
}

// The same rows in their order, each as soon as it may.
void set_times(const Network& network, CostModel cost, const Hops& hops, const HopTimes& times,
               const Chunks& chunks, Schedule& schedule) {
    const auto rows = schedule.hop.size();
    std::vector<std::int32_t> src(rows), dst(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        src[i] = hops.src[schedule.hop[i]];
        dst[i] = hops.dst[schedule.hop[i]];
    }
    Rows links;
    for (std::int32_t link = 0; hops.single_links && link < network.links(); ++link) {
        links.items.push_back(link);
        links.close();
    }
    Transfers transfers;
    transfers.chunk = schedule.chunk;
    transfers.src = src;
    transfers.dst = dst;
    transfers.route = hops.single_links ? schedule.hop : schedule.route;
    transfers.start = schedule.start;
    const std::vector<std::int64_t> bytes(chunks.size(), chunks.largest());
    const Timing timing{network, cost, hops.single_links ? links : schedule.routes};
    const auto start = retime(timing, transfers, bytes).start;
    Schedule timed;
    timed.time = 0;
    for (auto i : order_by(start)) {
        const auto hop = schedule.hop[i];
        timed.add(schedule.chunk[i], hop, hops.single_links ? -1 : schedule.route[i], start[i]);
        timed.time = std::max(timed.time, start[i] + times.duration[hop]);
    }
    timed.routes = std::move(schedule.routes);
    schedule = std::move(timed);
}

}  // namespace

Schedule plan_rooted(const Network& network, CostModel cost, const Hops& hops,
                     const HopTimes& times, const Chunks& chunks, const Search& search) {
    if (chunks.size() == 0 || chunks.takers(0).empty()) return nothing_to_move();
    if (hops.count() == 0) return {};
    std::span<const std::int32_t> reach;
    if (chunks.reach[0] >= 0) reach = chunks.sets[chunks.reach[0]];
    ForestGrower grower(network, hops, times, chunks.holders(0)[0], chunks.takers(0), reach,
                        search.seed);
    if (grower.nearest() == never) return {};
    const auto plans = plans_of(grower, chunks.size(), search.goal);
    const auto grown = [&](const std::vector<Plan>& some, bool in_step) {
        return good_forests(grower, some, chunks.size(), in_step, search.progress);
    };
    auto forests = grown(plans, false);
    if (forests.empty()) forests = grown({{1, grower.slot_of_all(), 0, 1}}, false);
    if (!hops.single_links) std::ranges::move(grown(plans, true), std::back_inserter(forests));
    const Forest* best = nullptr;
    double least = 1e300;
    for (const auto& forest : forests) {
        auto time = static_cast<double>(forest.time(chunks.size()));
        if (time >= least) continue;
        if (!forest.in_step) {
            const auto few = std::min(chunks.size(), sample);
            Schedule tried = scheduled(hops, times, forest, few);
            set_times(network, cost, hops, times, chunks, tried);
            time *= static_cast<double>(tried.time) /
                    static_cast<double>(std::max<ps>(1, forest.time(few)));
        }
        if (time < least) least = time, best = &forest;
    }
    if (best == nullptr) return {};
    Schedule schedule = scheduled(hops, times, *best, chunks.size());
    if (!best->in_step) set_times(network, cost, hops, times, chunks, schedule);
    return schedule;
}

}  // namespace weft
