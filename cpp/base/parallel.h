// Independent pieces of work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "base/threads.h"

namespace weft {

// Calls work(0) .. work(count - 1), each once, in any order, on up to `threads` threads: as many
// as the system grants. What one of them throws is thrown here, once the others have ended; no more
// are begun then.
template <class Work>
void in_parallel(std::size_t count, int threads, const Work& work) {
    std::atomic<std::size_t> next{0};
    on_threads(std::min(static_cast<std::size_t>(std::max(threads, 1)), count), [&] {
        try {
            for (std::size_t i; (i = next++) < count;) work(i);
        } catch (...) {
            next = count;
            throw;
        }
    });
}

}  // namespace weft
