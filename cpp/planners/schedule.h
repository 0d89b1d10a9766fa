// What every planner returns: who sends which chunk on which route, in order of start.
#pragma once

#include <cstdint>
#include <vector>

#include "base/network.h"

namespace weft {

struct Schedule {
    std::vector<std::int32_t> chunk;
    std::vector<std::int32_t> hop;
    std::vector<std::int32_t> route;   // empty on a network without switches: the hop's number
    std::vector<std::uint8_t> reduce;  // empty if nothing is summed on the way
    std::vector<ps> start;
    Rows routes;      // the links of each route; empty on a network without switches
    ps time = never;  // when the last taker is served; never, if some cannot be
};

}  // namespace weft
