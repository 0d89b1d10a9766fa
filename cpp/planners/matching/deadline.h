// The deadline guard: a slow link that starts late stretches the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/hops.h"

namespace weft {

class DeadlineGuard {
  public:
    DeadlineGuard(const Hops& hops, const HopTimes& times, ps target)
        : hops_(hops), times_(times), target_(target) {
        std::vector<std::int32_t> quickest(hops.bundles.size(), -1);
        for (std::int32_t h = 0; h < hops.count(); ++h) {
            auto& best = quickest[hops.steps[h].back()];
            if (best < 0 || times.duration[h] < times.duration[best]) best = h;
        }
        for (std::int32_t npu = 0; npu < hops.out.size(); ++npu) {
            for (auto h : hops.in[npu])
                if (quickest[hops.steps[h].back()] == h) ingress_.items.push_back(h);
            ingress_.close();
        }
    }

    // If a send now would end after the target, and the faster ways into the destination could
    // bring all it still lacks by then, it is better left to them.
    template <class Ports>
    bool is_too_late(std::int32_t hop, ps now, const Ports& ports, std::int64_t lacking) const {
        const ps end = now + times_.duration[hop];
        if (end <= target_) return false;
        std::int64_t room = 0;
        for (auto other : ingress_[hops_.dst[hop]]) {
            if (times_.duration[other] >= times_.duration[hop]) continue;
            const auto last = hops_.steps.offsets[other + 1] - 1;
            const ps held = times_.holds[last].length;
            const ps begin = std::max(now, ports.free_at(hops_.steps.items[last]));
            const ps tail = times_.duration[other] - held;
            if (end - tail > begin) room += (end - tail - begin) / held;
        }
        return room >= lacking;
    }

    void defer(std::int32_t hop) { deferred_.push_back(hop); }

    // When nothing moves any more, the deferred hops get time for at least the shortest of those
    // whose destinations lack something, and are handed out; false if there is none.
    template <class Handle>
    bool relax(ps now, const std::vector<std::int32_t>& lacking, Handle handle) {
        ps shortest = never;
        for (auto hop : deferred_)
            if (lacking[hops_.dst[hop]] > 0) shortest = std::min(shortest, times_.duration[hop]);
        if (shortest == never) return false;
        target_ = now + shortest;
        for (auto hop : deferred_) handle(hop);
        deferred_.clear();
        return true;
    }

  private:
    const Hops& hops_;
    const HopTimes& times_;
    ps target_;
    Rows ingress_;  // by NPU: of each bundle into it, the quickest hop that ends with it
    std::vector<std::int32_t> deferred_;
};

}  // namespace weft
