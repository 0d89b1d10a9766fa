// How soon messages over links can weigh so much, where each weighs what its source can know when
// it starts and its end can still tell before the time is over.
#pragma once

#include <cstdint>
#include <span>

#include "base/cost.h"

namespace weft {

// Links and the hops over them. Hops that take a link in one *way* hold it `before` after their
// start or later, and end `after` the hold or later. `weights` are tables, a row for each distance
// in `known` and a column for each in `told` (both ascending from 0, with 0 in front): table[i][j]
// is the most that a message weighs which starts known[i] after the beginning and ends told[j]
// before the end.
struct MessageLinks {
    std::span<const ps> known, told;
    std::span<const double> rate;           // per link: bytes a second, times how many are alike
    std::span<const std::int64_t> offsets;  // per link, and the end: its ways
    std::span<const ps> before, after;      // per way
    std::span<const std::int32_t> table;    // per way: the number of its table
    std::span<const double> weights;
};

// The smallest T at which all links have had the time for messages that weigh `needed` bytes.
// Rounded down, so that it stays a bound; `never` if that is too long for the clock.
ps time_for_messages(const MessageLinks& links, double needed);

}  // namespace weft
