#include "planners/trees/trees.h"

#include <algorithm>

#include "planners/tree_tasks.h"
#include "planners/trees/packing.h"

namespace weft {
namespace {

// Chunks share trees: many trees load links more evenly, but take time to find.
constexpr std::int32_t least_trees = 32, most_trees = 256;

// How strongly earlier chunks go first, in hops of tail for each chunk. Without it all sums would
// be finished before the first result is spread, and links idle that only spread.
constexpr double eagerness = 0.3;

// The same hops, of which `out` and `in` list only those between these NPUs.
Hops within(Hops hops, std::span<const std::int32_t> npus) {
    std::vector<bool> inside(hops.out.size(), false);
    for (auto npu : npus) inside[npu] = true;
    auto restricted = [&](const Rows& all) {
        Rows kept;
        for (std::int32_t npu = 0; npu < all.size(); ++npu) {
            for (auto h : all[npu])
                if (inside[hops.src[h]] && inside[hops.dst[h]]) kept.items.push_back(h);
            kept.close();
        }
        return kept;
    };
    hops.out = restricted(hops.out);
    hops.in = restricted(hops.in);
    return hops;
}

Tasks make_tasks(const Hops& hops, const std::vector<Tree>& trees, std::int32_t chunks) {
    Tasks tasks;
    TreeTasks tree_tasks(hops);
    for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
        const auto& tree = trees[chunk % trees.size()];
        tree_tasks.add(tasks, tree.up, tree.down, chunk, 0);
    }
    return tasks;
}

std::vector<ps> priorities(const Tasks& tasks, const HopTimes& times) {
    auto priority = tasks.tails({&times, 1});
    for (std::int32_t task = 0; task < tasks.size(); ++task)
        priority[task] -= static_cast<ps>(eagerness * tasks[task].chunk *
                                          static_cast<double>(times.duration[tasks[task].hop]));
    return priority;
}

TreeProblem tree_problem(const Chunks& chunks) {
    TreeProblem problem{{}, {}, -1, chunks.size()};
    if (chunks.size() == 0) return problem;
    std::ranges::set_union(chunks.holders(0), chunks.takers(0),
                           std::back_inserter(problem.members));
    if (!chunks.reduce[0]) problem.root = chunks.holders(0)[0];
    if (chunks.reach[0] >= 0) problem.reach = chunks.sets[chunks.reach[0]];
    return problem;
}

}  // namespace

Schedule plan_trees(const Network&, const Hops& hops, const HopTimes& times, const Chunks& chunks,
                    const Search& search) {
    const TreeProblem problem = tree_problem(chunks);
    if (problem.members.size() < 2) return nothing_to_move();
    if (hops.count() == 0) return {};
    const auto count =
        std::min(problem.chunks, std::clamp(problem.chunks / 2, least_trees, most_trees));
    const auto trees =
        problem.reach.empty()
            ? TreePacker(hops, times, problem, search.goal, search.seed).pack(count)
            : TreePacker(within(hops, problem.reach), times, problem, search.goal, search.seed)
                  .pack(count);
    if (trees.empty()) return {};
    const auto tasks = make_tasks(hops, trees, problem.chunks);
    search.progress.begin(tasks.size());
    Schedule schedule =
        list_schedule(hops, {&times, 1}, tasks, priorities(tasks, times), search.progress);
    if (search.progress.cancelled) throw Cancelled();
    return schedule;
}

}  // namespace weft
