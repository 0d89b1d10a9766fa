#include "planners/shares/shares.h"

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

Schedule plan_shares(const Hops& hops, std::span<const HopTimes> times, const Sizes& sizes,
                     const GivenTrees& trees, const Search& search) {
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
    search.progress.begin(tasks.size());
    Schedule schedule = list_schedule(hops, times, tasks, priority, search.progress);
    if (search.progress.cancelled) throw Cancelled();
    return schedule;
}

}  // namespace weft
