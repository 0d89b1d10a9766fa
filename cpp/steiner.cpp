#include "steiner.h"

#include <algorithm>
#include <array>

#include "list_schedule.h"
#include "parallel.h"
#include "steiner_trees.h"

namespace weft {
namespace {

constexpr int most_passes = 8;
constexpr int patience = 2;  // passes in a row that may gain nothing

// How far apart a class's first and last chunk are in priority, over the time of the busiest link.
// Without it all sums would be finished before the first result is spread, and links idle that
// only spread; with too much of it, chunks with a long way to go start too late.
constexpr std::array eagerness = {0.0, 0.5, 1.0};

struct Plan {
    Tasks tasks;
    std::vector<double> turn;  // per task: the chunk's place among those of its class, in [0, 1)
};

class SteinerPlanner {
  public:
    SteinerPlanner(const Hops& hops, std::span<const HopTimes> times, const Demands& demands,
                   const Sizes& sizes, std::uint64_t seed, ps bound, int threads,
                   Progress& progress)
        : hops_(hops), times_(times), demands_(demands), bound_(bound), threads_(threads),
          progress_(progress), router_(hops, times, demands, sizes, seed, bound, progress),
          task_of_npu_(hops.out.size()) {}

    Schedule run() {
        for (int pass = 0, in_vain = 0; pass < most_passes && in_vain < patience; ++pass) {
            if (!router_.pass()) return {};
            const ps before = best_.time;
            schedule_trees();
            if (best_.time <= bound_ + bound_ / 512) break;
            in_vain = best_.time < before - before / 512 ? 0 : in_vain + 1;
        }
        return std::move(best_);
    }

  private:
    void schedule_trees() {
        const Plan plan = make_plan();
        const auto tails = plan.tasks.tails(times_);
        std::array<Schedule, eagerness.size()> found;
        in_parallel(eagerness.size(), threads_, [&](std::size_t i) {
            auto priority = tails;
            const double apart = eagerness[i] * router_.busiest();
            for (std::size_t task = 0; task < priority.size(); ++task)
                priority[task] -= static_cast<ps>(apart * plan.turn[task]);
            found[i] = list_schedule(hops_, times_, plan.tasks, priority, progress_);
        });
        if (progress_.cancelled) throw Cancelled();
        for (auto& schedule : found)
            if (schedule.time < best_.time) best_ = std::move(schedule);
    }

    Plan make_plan() {
        Plan plan;
        const auto& classes = router_.classes();
        std::vector<std::pair<std::size_t, std::size_t>> places(demands_.bytes.size());
        for (std::size_t c = 0; c < classes.size(); ++c)
            for (std::size_t k = 0; k < classes[c].chunks.size(); ++k)
                places[classes[c].chunks[k]] = {c, k};
        for (std::size_t chunk = 0; chunk < places.size(); ++chunk) {
            const auto [c, k] = places[chunk];
            add_chunk(router_.tree(c, k), static_cast<std::int32_t>(chunk), classes[c].size,
                      plan.tasks);
            plan.turn.resize(plan.tasks.size(), static_cast<double>(k) /
                                                    static_cast<double>(classes[c].chunks.size()));
        }
        return plan;
    }

    // A partial sum waits for those below it, the first copies of a sum for the last sums.
    void add_chunk(const SteinerTree& tree, std::int32_t chunk, std::int32_t size, Tasks& tasks) {
        for (auto hop = tree.up.rbegin(); hop != tree.up.rend(); ++hop)
            task_of_npu_[hops_.src[*hop]] = tasks.add(*hop, chunk, true, size);
        last_sums_.clear();
        for (auto hop : tree.up) {
            const auto task = task_of_npu_[hops_.src[hop]];
            if (hops_.dst[hop] == tree.hub)
                last_sums_.push_back(task);
            else
                tasks.order(task, task_of_npu_[hops_.dst[hop]]);
        }
        for (auto hop : tree.down) task_of_npu_[hops_.src[hop]] = -1;
        for (auto hop : tree.down) {
            const auto task = tasks.add(hop, chunk, false, size);
            const auto before = task_of_npu_[hops_.src[hop]];
            if (before >= 0)
                tasks.order(before, task);
            else
                for (auto sum : last_sums_) tasks.order(sum, task);
            task_of_npu_[hops_.dst[hop]] = task;
        }
    }

    const Hops& hops_;
    std::span<const HopTimes> times_;
    const Demands& demands_;
    const ps bound_;
    const int threads_;
    Progress& progress_;
    SteinerRouter router_;
    Schedule best_;
    std::vector<std::int32_t> task_of_npu_, last_sums_;
};

}  // namespace

Schedule plan_steiner(const Hops& hops, std::span<const HopTimes> times, const Demands& demands,
                      const Sizes& sizes, std::uint64_t seed, ps bound, int threads,
                      Progress& progress) {
    return SteinerPlanner(hops, times, demands, sizes, seed, bound, threads, progress).run();
}

}  // namespace weft
