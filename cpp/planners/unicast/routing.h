// Ways for chunks that each go to one NPU, so that no link is loaded more than it must be.
#pragma once

#include <cstdint>

#include "base/progress.h"
#include "planners/unicast/paths.h"

namespace weft {

struct RoutedPaths {
    Paths paths;
    ps load = 0;             // how long the busiest link is held
    bool all_found = false;  // whether every chunk has a way
};

// `bound`: the whole takes at least that long, so links may be held that long without harm.
// `thrift`: how much the length of paths counts beside loads.
RoutedPaths route(const Hops& hops, const Unicast& unicast, double thrift, std::uint64_t seed,
                  ps bound, Progress& progress);

}  // namespace weft
