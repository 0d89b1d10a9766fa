// How far a long kernel is, and whether it should give up; shared with the thread that asks.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft {

// A phase is what people are told, such as "verifying". It has stages one after the other; each
// counts `done` up to `total`, which is 0 while nobody knows how much there is to do. Within a
// stage `total` stays and `done` only grows, so that what is shown never goes backwards.
struct Progress {
    std::atomic<std::int64_t> done{0}, total{0}, stage{0};
    std::atomic<bool> cancelled{false};

    void enter(std::string name) {
        const std::lock_guard lock(naming_);
        phase_ = std::move(name);
        stage = 0;
        done = total = 0;
    }
    std::string phase() const {
        const std::lock_guard lock(naming_);
        return phase_;
    }
    // The next stage of the phase, with so much to do.
    void begin(std::int64_t work) {
        ++stage;
        done = 0;
        total = work;
    }

  private:
    mutable std::mutex naming_;
    std::string phase_;
};

struct Cancelled : std::runtime_error {
    Cancelled() : std::runtime_error("cancelled") {}
};

}  // namespace weft
