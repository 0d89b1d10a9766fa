// Runs traces: every node starts when what it waits for has ended, and messages meet by channel.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/carrier.h"

namespace weft {

// What is counted, and how long computing takes in steps of the clock.
struct RunScale {
    RunRules rules;
    ps step;  // of the clock, in picoseconds
    ps microsecond;
    ps least_comp;  // of a COMP without a duration
    ps end;         // of the clock
};

// ASTRA-sim counts nanoseconds; they must still fit when picoseconds are made of them.
inline constexpr RunScale scale_of(RunRules rules) {
    constexpr ps end = ps{1} << 62;
    return rules == RunRules::weft ? RunScale{rules, 1, 1'000'000, 0, end}
                                   : RunScale{rules, 1000, 1'000, 1, end / 1000};
}

// A COMM_RECV that nothing came for, and the COMM_SEND that would have matched it but never
// started, if there is one.
struct Stuck {
    std::uint32_t recv, send;
};

// Times in picoseconds.
struct TraceOutcome {
    std::vector<ps> start, end;         // of each node; -1: it never did
    std::vector<std::uint32_t> cause;   // the node whose end let it start, or none
    std::vector<std::uint32_t> sender;  // of a COMM_RECV that has ended: its COMM_SEND
    std::vector<ps> finish;             // of each rank's last node; -1: some never ended
    std::vector<Stuck> stuck;
};

// Messages of one channel meet in the order in which both ends start. A COMM_SEND ends when its
// last byte has arrived, a COMM_RECV when that has happened and it was started.
//
// weft: a COMP that takes time has its rank's one compute unit, or the CPU; of those that wait for
// it the one that could start first goes first, of equals the one of the lowest id. custom:
// whatever can start does, in the order of `IdTable`. plain: a rank has one COMP on the unit, one
// on the CPU and one COMM_SEND at a time; the lowest id goes first.
//
// Throws std::invalid_argument where ASTRA-sim would abort.
TraceOutcome run_trace(const RunGraph& graph, Carrier& carrier, const RunScale& scale);

// The chain of nodes that decides when the last one ends, in order: each starts when the one before
// it ends, but a COMM_RECV that waits for its COMM_SEND only ends with it.
std::vector<std::uint32_t> critical_chain(const RunGraph& graph, const TraceOutcome& outcome);

}  // namespace weft
