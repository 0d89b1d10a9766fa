#include "planners/unicast/unicast.h"

#include <algorithm>
#include <array>

#include "base/random.h"
#include "planners/race.h"
#include "planners/sizes.h"

namespace weft {

namespace {

// How close to what can be had is close enough.
constexpr double close_enough = 1.002;
// More hops than this are not scheduled again and again.
constexpr std::int64_t many_hops = 1 << 20;

ps nearly(ps time) { return static_cast<ps>(static_cast<double>(time) * close_enough); }

Schedule attempt(const Hops& hops, const Unicast& unicast, double thrift, std::uint64_t seed,
                 ps bound, bool alone, Progress& progress) {
    // Attempts side by side are short, and would take each other's stages for their own.
    const auto begin = [&](std::int64_t work) {
        if (alone) progress.begin(work);
    };
    begin(unicast.chunks());
    const RoutedPaths routed = route(hops, unicast, thrift, seed, bound, progress);
    if (!routed.all_found || progress.cancelled) return {};
    // Much freedom keeps links busy in between, little of it shortens the end. The first is mostly
    // good enough, so they are tried one after the other.
    constexpr std::array<Precedence, 4> precedences{{{0.25, 1}, {1, 1}, {0, 1}, {1, 0}}};
    const std::size_t tries = routed.paths.hops() > many_hops ? 2 : precedences.size();
    return first_or_best(tries, 1, nearly(std::max(bound, routed.load)), [&](std::size_t i) {
        begin(routed.paths.hops());
        return schedule_paths(hops, unicast, routed.paths, routed.load, precedences[i], seed + i,
                              progress);
    });
}

}  // namespace

Unicast unicast_of(const Network& network, const Hops& hops, CostModel cost, const Chunks& chunks) {
    Unicast unicast{{}, {}, chunks.reach, chunks.sets, {}, {}};
    for (std::int32_t chunk = 0; chunk < chunks.size(); ++chunk) {
        unicast.src.push_back(chunks.holders(chunk)[0]);
        unicast.dst.push_back(chunks.takers(chunk)[0]);
    }
    Sizes sizes = group_sizes(chunks.bytes);
    unicast.times = time_hops(network, hops, cost, sizes);
    unicast.size = std::move(sizes.of_chunk);
    return unicast;
}

Schedule plan_unicast(const Hops& hops, const Unicast& unicast, const Search& search) {
    if (unicast.chunks() == 0) return nothing_to_move();
    // Small ones are tried several times: luck has a larger part in them.
    const double work = static_cast<double>(unicast.chunks()) * hops.count();
    constexpr double work_in_all = 1 << 22;
    const auto attempts =
        static_cast<std::size_t>(std::clamp(work_in_all / std::max(work, 1.0), 1.0, 16.0));
    // With few chunks a long detour takes as long as the whole should; with many only loads count.
    constexpr std::array<double, 4> thrifts{0.02, 0.2, 1, 5};
    Random seeds(search.seed);
    std::vector<std::uint64_t> own_seed(attempts);
    for (auto& own : own_seed) own = seeds();
    Schedule best =
        first_or_best(attempts, search.threads, nearly(search.goal), [&](std::size_t i) {
            return attempt(hops, unicast, thrifts[i % thrifts.size()], own_seed[i], search.goal,
                           attempts == 1, search.progress);
        });
    if (search.progress.cancelled) throw Cancelled();
    return best;
}

}  // namespace weft
