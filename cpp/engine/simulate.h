// Runs the rows of an algorithm on a network: what waits for what decides, not when it was planned.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/network.h"
#include "engine/row_waits.h"

namespace weft {

// What is run. `waits` are those of `rows`.
struct Run : Timing {
    const LogicView& rows;
    std::span<const std::int64_t> bytes;  // by chunk
    const RowWaits& waits;
    std::int64_t reducer = 0;  // bytes per second that an NPU adds; 0: adding takes no time

    // How long an NPU takes to add what a row brings.
    ps adding(std::int32_t row) const {
        if (reducer == 0 || !rows.reduce[row]) return 0;
        return serialization(bytes[rows.chunk[row]], reducer);
    }
};

struct Simulated {
    std::vector<ps> start, end;  // per row; `end` is when what it brought can be used, or is added
    std::vector<ps> busy;        // per link: how long it was held
};

// First come first served: a row asks for its hop when nothing is left to wait for, and gets the
// first time at which all its links are free when needed. Rows that ask at the same time are served
// in the order of the table. An NPU adds one after the other, in the order in which parts arrive.
Simulated run_first_come(const Run& run);

// Rows one after the other in the order of the table: each gets the first time from `earliest` on
// at which it has nothing left to wait for and its links are free. Adding takes no time.
Simulated run_in_order(const Run& run, std::span<const ps> earliest);

// Each link carries its rows in the order in which they are planned to start on it, and each NPU
// adds in the order in which parts are planned to arrive. Rows planned as one multicast, or as one
// sum in a switch, stay one. For a plan that holds, without time for adding, no row is later than
// planned: a wait that the plan itself does not heed is left out.
Simulated run_as_planned(const Run& run, std::span<const ps> start, std::span<const ps> end);

// Why the run took as long as it did: a chain of rows, from the first to the one that ends last,
// each of which starts when the one before it ended (`data`; ends then, if it waited for memory
// only), left a link (`link`), or is added when the one before it was (`adding`). `start` begins
// the chain.
enum class Cause : std::uint8_t { start, data, link, adding };
struct CriticalStep {
    std::int32_t row;
    Cause cause;
    std::int32_t link;  // that was waited for; -1 for the other causes
};
std::vector<CriticalStep> critical_path(const Run& run, const Simulated& done);

// How long the hop of each row takes, and when it holds the links of its route, in their order.
struct Occupied {
    std::vector<ps> duration;       // per row
    std::vector<ps> begin, length;  // per link of each row's route
};
Occupied occupied(const Run& run, std::span<const ps> start);

}  // namespace weft
