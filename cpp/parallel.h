// Independent pieces of work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace weft {

// Calls work(0) .. work(count - 1), each once, in any order, on up to `threads` threads: as many
// as the system grants. What one of them throws is thrown here, once the others have ended; no more
// are begun then.
template <class Work>
void in_parallel(std::size_t count, int threads, Work work) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failing;
    auto body = [&] {
        try {
            for (std::size_t i; (i = next++) < count;) work(i);
        } catch (...) {
            next = count;
            const std::lock_guard lock(failing);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> pool;
    const auto wanted = std::min(static_cast<std::size_t>(std::max(threads, 1)), count);
    try {
        while (pool.size() + 1 < wanted) pool.emplace_back(body);
    } catch (const std::system_error&) {
        // No more threads to be had; those there are will do.
    }
    body();
    for (auto& thread : pool) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace weft
