#include "planners/shares/shares.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "planners/list_schedule.h"
#include "planners/tree_tasks.h"

namespace weft {

Hops routed_hops(const Network& network, const GivenHops& given) {
    Hops hops;
    hops.src.assign(given.src.begin(), given.src.end());
    hops.dst.assign(given.dst.begin(), given.dst.end());
    hops.steps.offsets.assign(given.routes.offsets.begin(), given.routes.offsets.end());
    hops.steps.items.assign(given.routes.items.begin(), given.routes.items.end());
    const auto links = static_cast<std::int32_t>(network.src.size());
    for (std::int32_t link = 0; link < links; ++link) {
        hops.bundles.items.push_back(link);
        hops.bundles.close();
    }
    hops.out = group_by(hops.src, network.npus);
    hops.in = group_by(hops.dst, network.npus);
    hops.single_links = false;
    hops.copied.assign(links, false);
    return hops;
}

namespace {

// Messages of a lane that wait for a link at a time: enough to choose from, and no more to look at
// whenever a link falls free.
constexpr std::size_t most_in_line = 48;

// Whatever leaves by a lane waits for what leaves so many turns before it.
void line_up(Tasks& tasks, std::span<const std::int32_t> lane, const std::vector<ps>& priority) {
    std::vector<std::int32_t> order(tasks.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) {
        const auto key = [&](auto task) {
            return std::tuple(lane[tasks[task].hop], -priority[task], task);
        };
        return key(a) < key(b);
    });
    for (std::size_t i = most_in_line; i < order.size(); ++i) {
        const auto before = order[i - most_in_line];
        if (lane[tasks[before].hop] == lane[tasks[order[i]].hop]) tasks.order(before, order[i]);
    }
}

}  // namespace

Schedule plan_shares(const Hops& hops, std::span<const HopTimes> times, const Sizes& sizes,
                     std::span<const std::int32_t> lane, const GivenTrees& trees,
                     const Search& search) {
    Tasks tasks;
    TreeTasks tree_tasks(hops);
    std::vector<ps> priority;
    for (std::int32_t chunk = 0; chunk < trees.up.size(); ++chunk) {
        tree_tasks.add(tasks, trees.up[chunk], trees.down[chunk], chunk, sizes.of_chunk[chunk]);
        // Sums were added from the leaves inwards.
        for (auto i = trees.up.offsets[chunk + 1]; i-- > trees.up.offsets[chunk];)
            priority.push_back(-ps{trees.up_turn[i]});
        for (auto i = trees.down.offsets[chunk]; i < trees.down.offsets[chunk + 1]; ++i)
            priority.push_back(-ps{trees.down_turn[i]});
    }
    line_up(tasks, lane, priority);
    // Chunks of one size keep in step as if all ways had the same latency: exact times come later.
    std::vector<HopTimes> slots(times.begin(), times.end());
    for (auto& of_size : slots)
        for (auto& hold : of_size.holds) hold.offset = 0;
    search.progress.begin(tasks.size());
    Schedule schedule = list_schedule(hops, slots, tasks, priority, search.progress);
    if (search.progress.cancelled) throw Cancelled();
    return schedule;
}

}  // namespace weft
