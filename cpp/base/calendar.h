// When a link is taken: a set of intervals that do not overlap, most of them grown together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/cost.h"

namespace weft {

class Calendar {
  public:
    // The earliest time from `begin` on at which the link is free for `length`.
    ps next_gap(ps begin, ps length) const {
        if (taken_.empty() || begin >= taken_.back().end) return begin;
        auto busy =
            taken_.begin() + first_not([&](const Interval& one) { return one.end <= begin; });
        for (; busy != taken_.end() && busy->begin < begin + length; ++busy) begin = busy->end;
        return begin;
    }

    // Takes the link; it must be free.
    void take(ps begin, ps length) {
        const ps end = begin + length;
        const auto after =
            taken_.begin() + first_not([&](const Interval& one) { return one.begin <= begin; });
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

    // Drops what is over by `now`, once that is most of it: nobody may ask for times before.
    void forget(ps now) {
        constexpr std::size_t few = 64;
        if (taken_.size() < few) return;
        const auto ahead = std::partition_point(
            taken_.begin(), taken_.end(), [&](const Interval& one) { return one.end <= now; });
        if (2 * (ahead - taken_.begin()) > taken_.end() - taken_.begin())
            taken_.erase(taken_.begin(), ahead);
    }

  private:
    struct Interval {
        ps begin, end;
    };

    // Where the first interval lies for which `before` does not hold, as for all after it. Most are
    // near the end: the search goes back from there in steps that double.
    std::ptrdiff_t first_not(const auto& before) const {
        auto high = taken_.end();
        for (std::ptrdiff_t step = 1; high != taken_.begin(); step *= 2) {
            const auto low = high - std::min(step, high - taken_.begin());
            if (before(*low)) return std::partition_point(low + 1, high, before) - taken_.begin();
            high = low;
        }
        return 0;
    }

    std::vector<Interval> taken_;  // ascending
};

// One for each link: for hops that hold several links, each at its own time.
class Calendars {
  public:
    explicit Calendars(std::int32_t links) : of_(links) {}

    // The earliest start from `start` on at which all links of a route are free when it needs them.
    ps first_fit(std::span<const std::int32_t> links, std::span<const Hold> holds, ps start) const {
        for (bool fits = false; !fits;) {
            fits = true;
            for (std::size_t k = 0; k < links.size(); ++k) {
                const ps begin = start + holds[k].offset;
                const ps gap = of_[links[k]].next_gap(begin, holds[k].length);
                start += gap - begin;
                fits = fits && gap == begin;
            }
        }
        return start;
    }

    void take(std::span<const std::int32_t> links, std::span<const Hold> holds, ps start) {
        for (std::size_t k = 0; k < links.size(); ++k)
            of_[links[k]].take(start + holds[k].offset, holds[k].length);
    }

    void forget(std::span<const std::int32_t> links, ps now) {
        for (auto link : links) of_[link].forget(now);
    }

  private:
    std::vector<Calendar> of_;
};

}  // namespace weft
