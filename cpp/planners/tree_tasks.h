// Chunks that go by trees, as tasks: partial sums up to the root, then copies down from it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hops.h"
#include "planners/list_schedule.h"

namespace weft {

class TreeTasks {
  public:
    explicit TreeTasks(const Hops& hops) : hops_(hops), task_of_npu_(hops.out.size()) {}

    // Adds the transfers of one chunk; hops are in order from the root outwards. A partial sum
    // waits for those below it, a copy for the one before it, the first copies for the last sums.
    void add(Tasks& tasks, std::span<const std::int32_t> up, std::span<const std::int32_t> down,
             std::int32_t chunk, std::int32_t size) {
        for (auto hop : up) task_of_npu_[hops_.dst[hop]] = none;
        for (auto hop = up.rbegin(); hop != up.rend(); ++hop)
            task_of_npu_[hops_.src[*hop]] = tasks.add(*hop, chunk, true, size);
        last_sums_.clear();
        for (auto hop : up) {
            const auto task = task_of_npu_[hops_.src[hop]];
            const auto above = task_of_npu_[hops_.dst[hop]];
            if (above == none)
                last_sums_.push_back(task);
            else
                tasks.order(task, above);
        }
        for (auto hop : down) task_of_npu_[hops_.src[hop]] = none;
        for (auto hop : down) {
            const auto task = tasks.add(hop, chunk, false, size);
            const auto before = task_of_npu_[hops_.src[hop]];
            if (before != none)
                tasks.order(before, task);
            else
                for (auto sum : last_sums_) tasks.order(sum, task);
            task_of_npu_[hops_.dst[hop]] = task;
        }
    }

  private:
    static constexpr std::int32_t none = -1;

    const Hops& hops_;
    std::vector<std::int32_t> task_of_npu_;  // that brings the sum away, or the copy there
    std::vector<std::int32_t> last_sums_;
};

}  // namespace weft
