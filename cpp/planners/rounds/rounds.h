// All-Gather by synchronous rounds, for large networks without switches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/network.h"
#include "planners/schedule.h"

namespace weft {

// What a run is told. A send holds link l for `period[l]` rounds, and its chunk can be sent on
// `lag[l]` rounds after it began (both from 1). `owner[c]` has chunk c at first; who owns none
// takes no part.
struct RoundJob {
    std::span<const std::int32_t> period, lag, owner;
    int file;         // to write the log into
    std::int64_t at;  // from this byte on
};

struct Rounds {
    std::vector<std::int64_t> offsets{0};  // of the rounds in the log, and its end
    std::int64_t sends = 0;
    bool complete = false;  // else some chunk has no way to some NPU
};

// The log is the same, byte for byte, on any number of threads. Throws `Cancelled`, and
// std::system_error if it cannot be written.
Rounds run_rounds(const Network& network, const RoundJob& job, const Search& search);

}  // namespace weft
