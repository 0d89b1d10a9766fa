#include "trees.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "list_schedule.h"
#include "tree_packing.h"

namespace weft {
namespace {

constexpr std::int32_t most_trees = 256;

// How strongly earlier chunks go first, in hops of tail for each chunk. Without it all sums would
// be finished before the first result is spread, and links idle that only spread.
constexpr double eagerness[] = {0.03, 0.1, 0.3};

// The transfers of one chunk along a tree: a partial sum waits for those below it, the first
// copies for the last sums.
void add_chunk(const Hops& hops, const Tree& tree, std::int32_t chunk, Tasks& tasks,
               std::vector<std::int32_t>& task_of_npu) {
    std::vector<std::int32_t> last_sums;
    std::fill(task_of_npu.begin(), task_of_npu.end(), -1);
    for (auto hop = tree.up.rbegin(); hop != tree.up.rend(); ++hop)
        task_of_npu[hops.src[*hop]] = tasks.add(*hop, chunk, true);
    for (auto hop : tree.up) {
        const auto above = task_of_npu[hops.dst[hop]];
        if (above >= 0)
            tasks.order(task_of_npu[hops.src[hop]], above);
        else
            last_sums.push_back(task_of_npu[hops.src[hop]]);
    }
    std::fill(task_of_npu.begin(), task_of_npu.end(), -1);
    for (auto hop : tree.down) {
        const auto task = tasks.add(hop, chunk, false);
        const auto before = task_of_npu[hops.src[hop]];
        if (before >= 0)
            tasks.order(before, task);
        else
            for (auto sum : last_sums) tasks.order(sum, task);
        task_of_npu[hops.dst[hop]] = task;
    }
}

struct Trial {
    Tasks tasks;
    std::vector<ps> tails;
};

Trial prepare(const Hops& hops, const HopTimes& times, const TreeProblem& problem,
              std::uint64_t seed, ps bound) {
    const auto trees = TreePacker(hops, times, problem, bound, seed)
                           .pack(std::min(problem.chunks, most_trees));
    Trial trial;
    if (trees.empty()) return trial;
    std::vector<std::int32_t> task_of_npu(hops.out.size());
    for (std::int32_t chunk = 0; chunk < problem.chunks; ++chunk)
        add_chunk(hops, trees[chunk % trees.size()], chunk, trial.tasks, task_of_npu);
    trial.tails = trial.tasks.tails(times);
    return trial;
}

std::vector<ps> priorities(const Trial& trial, const HopTimes& times, double eager) {
    std::vector<ps> priority(trial.tails);
    for (std::int32_t task = 0; task < trial.tasks.size(); ++task)
        priority[task] -= static_cast<ps>(
            eager * trial.tasks.chunk(task) *
            static_cast<double>(times.duration[trial.tasks.hop(task)]));
    return priority;
}

}  // namespace

Schedule plan_trees(const Hops& hops, const HopTimes& times, const TreeProblem& problem,
                    std::uint64_t seed, int trials, ps bound, int threads, Progress& progress) {
    constexpr int variants = std::size(eagerness);
    std::vector<Trial> prepared(trials);
    std::vector<Schedule> found(static_cast<std::size_t>(trials) * variants);
    auto in_parallel = [&](std::size_t count, auto work) {
        std::atomic<std::size_t> next{0};
        auto body = [&] {
            for (std::size_t i; (i = next++) < count && !progress.cancelled;) work(i);
        };
        std::vector<std::thread> pool;
        for (int t = 1; t < std::min<int>(threads, static_cast<int>(count)); ++t)
            pool.emplace_back(body);
        body();
        for (auto& thread : pool) thread.join();
        if (progress.cancelled) throw Cancelled();
    };
    in_parallel(prepared.size(), [&](std::size_t i) {
        prepared[i] = prepare(hops, times, problem, seed + i, bound);
    });
    if (prepared[0].tasks.size() == 0) return {};
    in_parallel(found.size(), [&](std::size_t i) {
        const auto& trial = prepared[i / variants];
        const auto priority = priorities(trial, times, eagerness[i % variants]);
        found[i] = list_schedule(hops, times, trial.tasks, priority, progress);
    });
    return std::move(*std::min_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
        return a.time < b.time;
    }));
}

}  // namespace weft
