// The judge of a log of rounds: what `weft.algorithm.rounds` describes. The log is judged as it is
// read, on all cores, and nothing in it is trusted, its lengths included.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/cost.h"
#include "base/log_bytes.h"
#include "base/network.h"
#include "base/progress.h"

namespace weft::judge {

// A log, and how many entries it claims.
struct RoundRecord {
    LogBytes log;
    std::span<const std::int64_t> offsets;
    ps slot = 1;  // rounds times slot is within the clock
    std::int64_t count = 0;

    std::int64_t rounds() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

// Who has and who carries what.
struct RoundParts {
    std::span<const std::int64_t> bytes;    // of each chunk
    std::span<const std::int32_t> owner;    // of each chunk; -1: whoever sends it first
    std::span<const std::uint8_t> present;  // of each NPU
    std::span<const std::uint8_t>
        has_reverse;  // of each link, if there are sums: its reverse is its own

    std::int32_t chunks() const { return static_cast<std::int32_t>(bytes.size()); }
};

// All that a log claims. The network has no switches, and everybody in it takes part.
struct RoundClaim : RoundRecord, RoundParts {
    const Network* network = nullptr;
    CostModel cost;
    bool sums = false, spreads = false;  // Reduce-Scatter, All-Gather; All-Reduce: one, then other
};

// What can be wrong, in the order in which it is looked for. Fields of a violation that mean
// something are named beside each; where there are sums, times of copies count from their end on.
enum class RoundCode {
    offsets,         // round: where they do not rise from 0 to the end of the log
    length,          // round; other: bytes it should have
    beyond,          // round: a bit is set that is no link's
    count,           // other: entries there are
    no_reverse,      // round, link: nothing leads back
    chunk_range,     // round, link; chunk: the number
    link_taken,      // round, link, chunk: who takes it, at time; other: who holds it, until then
    never_held,      // round, link, chunk, npu: sent at time, never there
    held_late,       // the same; there at `until`
    owner_sends,     // round, link, chunk, npu: the sum is to stay there
    sent_twice,      // round, link, chunk, npu; other: the other round
    lost,            // round, link, chunk, npu: gets a partial sum and sends none
    sent_early,      // the same; sends its own at time, gets this one at `until`
    never_received,  // chunk, npu: at the end
    never_sent,      // chunk, npu: its contribution is missing
};

struct RoundViolation {
    RoundCode code;
    std::int64_t round = -1;
    std::int32_t link = -1;
    std::int64_t chunk = -1;
    std::int32_t npu = -1;
    ps time = 0, until = 0;
    std::int64_t other = -1;
};

// The first violation in the order of the log, or none; not changed by the number of threads.
// `progress` counts bytes. Throws `Cancelled`, and `LogChanged`; a log that changes while it is
// read may also get any verdict: whoever has the file must see to it.
std::optional<RoundViolation> judge_rounds(const RoundClaim& claim, Progress& progress);

}  // namespace weft::judge
