// How far a long kernel is, and whether it should give up; shared with the thread that asks.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace weft {

struct Progress {
    std::atomic<std::int64_t> done{0}, total{0};
    std::atomic<bool> cancelled{false};
};

struct Cancelled : std::runtime_error {
    Cancelled() : std::runtime_error("cancelled") {}
};

}  // namespace weft
