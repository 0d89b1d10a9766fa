// Reads logs of rounds: what every link of a network carries in every round.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/log_bytes.h"

namespace weft {

// As `RoundLog` in Python describes it.
struct RoundLogView {
    LogBytes log;
    std::span<const std::int64_t> offsets;
    std::int64_t links;
    bool wide;  // chunks' numbers have four bytes, else two
};

// What is carried, in order of rounds, and of links in a round.
struct RoundEntries {
    std::vector<std::int32_t> round, link, chunk;
    std::int64_t damaged = -1;  // a round that is not what it should be; then the rest is missing
};

// All entries, `count` of them; or only those of some links, in ascending order. Throw
// `LogChanged`.
RoundEntries round_entries(const RoundLogView& view, std::int64_t count);
RoundEntries round_entries(const RoundLogView& view, std::span<const std::int32_t> links);

}  // namespace weft
