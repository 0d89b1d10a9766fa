// When a link is taken: a set of intervals that do not overlap, most of them grown together.
#pragma once

#include <vector>

#include "cost.h"

namespace weft {

class Calendar {
  public:
    // The earliest time from `begin` on at which the link is free for `length`.
    ps next_gap(ps begin, ps length) const {
        if (taken_.empty() || begin >= taken_.back().end) return begin;
        auto busy = taken_.end();  // most look near the end
        while (busy != taken_.begin() && (busy - 1)->end > begin) --busy;
        for (; busy != taken_.end() && busy->begin < begin + length; ++busy) begin = busy->end;
        return begin;
    }

    // Takes the link; it must be free.
    void take(ps begin, ps length) {
        const ps end = begin + length;
        auto after = taken_.end();
        while (after != taken_.begin() && (after - 1)->begin > begin) --after;
        const bool joins_before = after != taken_.begin() && (after - 1)->end == begin;
        const bool joins_after = after != taken_.end() && after->begin == end;
        if (joins_before && joins_after) {
            (after - 1)->end = after->end;
            taken_.erase(after);
        } else if (joins_before) {
            (after - 1)->end = end;
        } else if (joins_after) {
            after->begin = begin;
        } else {
            taken_.insert(after, {begin, end});
        }
    }

  private:
    struct Interval {
        ps begin, end;
    };
    std::vector<Interval> taken_;  // ascending
};

}  // namespace weft
