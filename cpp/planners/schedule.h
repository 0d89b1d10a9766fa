// What every planner is given and returns: who sends which chunk on which route, in order of start.
#pragma once

#include <cstdint>
#include <vector>

#include "base/network.h"
#include "base/progress.h"

namespace weft {

// How a planner searches. The result does not depend on the number of threads.
struct Search {
    std::uint64_t seed;
    ps goal;  // a time to aim at: no plan is shorter
    int threads;
    Progress& progress;
};

struct Schedule {
    std::vector<std::int32_t> chunk;
    std::vector<std::int32_t> hop;
    std::vector<std::int32_t> route;   // empty on a network without switches: the hop's number
    std::vector<std::uint8_t> reduce;  // empty if nothing is summed on the way
    std::vector<ps> start;
    Rows routes;      // the links of each route; empty on a network without switches
    ps time = never;  // when the last taker is served; never, if some cannot be

    // Without a route (-1) where that is the hop's number.
    void add(std::int32_t of_chunk, std::int32_t over, std::int32_t by, ps now) {
        chunk.push_back(of_chunk);
        hop.push_back(over);
        if (by >= 0) route.push_back(by);
        start.push_back(now);
    }
};

// Drops the rows that are not kept from columns, of which some may be empty.
template <class... T>
void keep_rows(const std::vector<bool>& kept, std::vector<T>&... columns) {
    const auto keep = [&](auto& column) {
        std::size_t next = 0;
        for (std::size_t i = 0; i < column.size(); ++i)
            if (kept[i]) column[next++] = column[i];
        column.resize(next);
    };
    (keep(columns), ...);
}

inline Schedule nothing_to_move() {
    Schedule nothing;
    nothing.time = 0;
    return nothing;
}

}  // namespace weft
