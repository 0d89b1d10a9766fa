// Forest: trees from one root that carry chunks in turn, without ever meeting on a link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/hops.h"

namespace weft {

// A hop of a tree, and when the tree's first chunk takes it, over which link of each bundle.
struct Branch {
    std::int32_t hop;
    ps start;
    std::vector<std::int32_t> links;
};

struct Forest {
    std::vector<std::vector<Branch>> trees;  // from the root outwards
    std::vector<ps> depth;                   // of each: until its last member has the first chunk
    ps slot = 0;                             // from one chunk of a tree to its next
    bool in_step = false;                    // whether chunks can go by these times as they are

    // When the last of so many chunks arrives; each goes by the tree where it arrives first.
    ps time(std::int32_t chunks) const {
        ps last = 0;
        divide(chunks,
               [&](std::int32_t tree, ps begin) { last = std::max(last, depth[tree] + begin); });
        return last;
    }
    // Calls `take(tree, begin)` for each chunk in turn.
    template <class Take>
    void divide(std::int32_t chunks, Take take) const {
        using Turn = std::pair<ps, std::int32_t>;
        std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
        for (std::int32_t tree = 0; tree < static_cast<std::int32_t>(trees.size()); ++tree)
            turns.push({depth[tree], tree});
        for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
            const auto [arrival, tree] = turns.top();
            turns.pop();
            turns.push({arrival + slot, tree});
            take(tree, arrival - depth[tree]);
        }
    }
};

// When links are taken, in a time that comes again every slot.
class Rota {
  public:
    void reset(std::size_t links, ps slot) {
        slot_ = slot;
        taken_.resize(links);
        for (auto& link : taken_) link.clear();
    }
    ps slot() const { return slot_; }
    // The next time that is a multiple of the part of a slot that a chunk takes. Where a link
    // carries several trees, they keep step, so that no gap is too short for one.
    ps snapped(ps time, ps length) const {
        const ps parts = slot_ / length;
        if (parts < 3) return time;
        const ps part = slot_ / parts, begun = time / slot_ * slot_;
        const ps next = (time - begun + part - 1) / part;
        return next < parts ? begun + next * part : begun + slot_;
    }
    // The first time from `time` on at which a link is free for so long; `never` if at none.
    ps first_free(std::int64_t link, ps time, ps length) const {
        if (length > slot_) return never;
        const auto& taken = taken_[link];
        if (taken.empty()) return time;
        const auto count = taken.size();
        const ps now = time % slot_;
        const auto later = static_cast<std::size_t>(
            std::ranges::upper_bound(taken, now, {}, &Stay::begin) - taken.begin());
        const auto& before = taken[(later + count - 1) % count];
        ps wait =
            std::max<ps>(0, before.begin + before.length - now - (before.begin > now ? slot_ : 0));
        for (std::size_t i = 0; i < count && wait < slot_; ++i) {
            const auto& next = taken[(later + i) % count];
            const ps until = next.begin - now + (next.begin > now ? 0 : slot_);
            if (until - wait >= length) return time + wait;
            wait = until + next.length;
        }
        return never;
    }
    void take(std::int64_t link, ps time, ps length) {
        auto& taken = taken_[link];
        const Stay stay{time % slot_, length};
        taken.insert(std::ranges::upper_bound(taken, stay.begin, {}, &Stay::begin), stay);
    }

  private:
    struct Stay {
        ps begin, length;
    };
    ps slot_ = 1;
    std::vector<std::vector<Stay>> taken_;
};

}  // namespace weft
