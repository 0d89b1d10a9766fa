// Threads that work in step: all of them finish a phase before any begins the next.
#pragma once

#include <barrier>
#include <exception>
#include <latch>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace weft {

// What a member of a team knows of it.
struct Place {
    int number, size;
    std::barrier<>& all;
    void wait() { all.arrive_and_wait(); }
};

// Calls work(Place) once on each of up to `threads` threads, as many as the system grants, the
// caller's among them; before that, begin(how many there are) once. `work` must not throw.
template <class Begin, class Work>
void as_team(int threads, Begin begin, Work work) {
    std::latch formed(1);
    std::optional<std::barrier<>> all;
    std::exception_ptr failed;
    int size = 1;
    std::vector<std::thread> pool;
    try {
        while (size < threads) {
            pool.emplace_back([&, number = size] {
                formed.wait();
                if (!failed) work(Place{number, size, *all});
            });
            ++size;
        }
    } catch (const std::system_error&) {
        // No more threads to be had; those there are will do.
    }
    all.emplace(size);
    try {
        begin(size);
    } catch (...) {
        failed = std::current_exception();
    }
    formed.count_down();
    if (!failed) work(Place{0, size, *all});
    for (auto& thread : pool) thread.join();
    if (failed) std::rethrow_exception(failed);
}

}  // namespace weft
