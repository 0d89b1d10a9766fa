// How soon a set of links can have carried so much: the arithmetic under every bound.
#pragma once

#include <cstdint>
#include <span>

#include "cost.h"

namespace weft {

// A link: the first chunk over it is across at `first` at the soonest, another every `gap`.
struct Gate {
    ps first;
    ps gap;
    std::int64_t bandwidth;  // bytes per second
};

// The smallest T by which `chunks` whole chunks can have crossed. A gate lets
// floor((T - first) / gap) + 1 through.
ps time_for_chunks(std::span<const Gate> gates, std::int64_t chunks);

// The same for bytes that may be cut at will: no byte crosses a gate before its `first`, which
// is then α alone. Rounded down, so that it stays a bound.
ps time_for_bytes(std::span<const Gate> gates, double bytes);

}  // namespace weft
