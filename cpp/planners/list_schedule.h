// List scheduling: transfers whose hops and dependencies are decided get their times. Whenever a
// hop can start, the waiting transfer of highest priority starts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hops.h"
#include "base/progress.h"
#include "planners/schedule.h"

namespace weft {

struct Task {
    std::int32_t hop, chunk, size;
    std::uint8_t reduce;
};

// Transfers to be scheduled, with who waits for whom.
class Tasks {
  public:
    // Adds a transfer of `chunk`, which has size number `of_size`, over `hop`; returns its number.
    std::int32_t add(std::int32_t hop, std::int32_t chunk, std::uint8_t reduce,
                     std::int32_t of_size) {
        tasks_.push_back({hop, chunk, of_size, reduce});
        waits_for_.push_back(0);
        first_edge_.push_back(-1);
        return size() - 1;
    }
    // `later` may start only after `earlier` has arrived.
    void order(std::int32_t earlier, std::int32_t later) {
        edges_.push_back({later, first_edge_[earlier]});
        first_edge_[earlier] = static_cast<std::int32_t>(edges_.size()) - 1;
        ++waits_for_[later];
    }

    std::int32_t size() const { return static_cast<std::int32_t>(tasks_.size()); }
    const Task& operator[](std::int32_t task) const { return tasks_[task]; }
    const std::vector<std::int32_t>& waits_for() const { return waits_for_; }

    template <class Handle>
    void for_each_after(std::int32_t task, Handle handle) const {
        for (auto edge = first_edge_[task]; edge >= 0; edge = edges_[edge].next)
            handle(edges_[edge].task);
    }

    // Time until each task could start if no link were ever taken; and time from each task's start
    // until all that waits for it, directly or not, has arrived.
    // Tasks must have been added so that none waits for a later one. `times`: for each size.
    std::vector<ps> heads(std::span<const HopTimes> times) const;
    std::vector<ps> tails(std::span<const HopTimes> times) const;

  private:
    struct Edge {
        std::int32_t task, next;
    };
    std::vector<Task> tasks_;
    std::vector<std::int32_t> waits_for_, first_edge_;
    std::vector<Edge> edges_;
};

// `times`: for each size. Equal priorities go in order of task number.
Schedule list_schedule(const Hops& hops, std::span<const HopTimes> times, const Tasks& tasks,
                       const std::vector<ps>& priority, Progress& progress);

}  // namespace weft
