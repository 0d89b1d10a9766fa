// Threads beside the caller's: the only place that makes any. It knows nothing of algorithms, so
// that planners and the judge may both use it.
#pragma once

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <latch>
#include <mutex>
#include <new>
#include <semaphore>
#include <system_error>
#include <thread>
#include <vector>

namespace weft {

// The first exception of a thread needs memory that the C++ library keeps for each thread, and ends
// the process if there is none by then. This takes it while there is some.
inline void prepare_thread() {
    [[maybe_unused]] const volatile int touched = std::uncaught_exceptions();
}

// As many threads as the system grants of those that are wanted. They are joined whatever happens,
// and what one of them throws, memory that is not to be had included, is kept for the caller.
class Threads {
  public:
    Threads() = default;
    Threads(const Threads&) = delete;
    ~Threads() { join(); }

    // Begins, once, body(1), body(2), .. on new threads, up to `wanted` of them; gives how many.
    //
    // A thread is made only while there is room to prepare it, and works only when all are
    // prepared.
    template <class Body>
    std::size_t begin(std::size_t wanted, const Body& body) {
        try {
            pool_.reserve(wanted);
            while (pool_.size() < wanted) {
                check_room();
                pool_.emplace_back([this, &body, number = pool_.size() + 1] {
                    prepare_thread();
                    ready_.release();
                    released_.wait();
                    guard([&] { body(number); });
                });
                ready_.acquire();
            }
        } catch (const std::system_error&) {
            // No more threads to be had; those there are will do.
        } catch (const std::bad_alloc&) {
            // The same.
        }
        released_.count_down();
        return pool_.size();
    }

    // Calls what may throw on this thread; that too is kept.
    void guard(const auto& call) noexcept {
        try {
            call();
        } catch (...) {
            const std::lock_guard lock(failing_);
            if (!failure_) failure_ = std::current_exception();
        }
    }

    // Waits for all to end, and throws what the first to fail threw.
    void finish() {
        join();
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    // Whether the system has room for a stack and a little more. A new thread has nothing of what
    // the process keeps for later, so it is the system that is asked.
    static void check_room() {
        constexpr std::size_t more = 1 << 20;
        pthread_attr_t usual;
        std::size_t size = 0;
        if (pthread_attr_init(&usual) != 0) throw std::bad_alloc();
        pthread_attr_getstacksize(&usual, &size);
        pthread_attr_destroy(&usual);
        void* const room = ::mmap(nullptr, size + more, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (room == MAP_FAILED) throw std::bad_alloc();
        ::munmap(room, size + more);
    }

    void join() {
        for (auto& thread : pool_) thread.join();
        pool_.clear();
    }

    std::binary_semaphore ready_{0};
    std::latch released_{1};
    std::vector<std::thread> pool_;
    std::exception_ptr failure_;
    std::mutex failing_;
};

// Calls body() on up to `wanted` threads, the caller's among them. What one of them throws is
// thrown here, once the others have ended.
template <class Body>
void on_threads(std::size_t wanted, const Body& body) {
    const auto work = [&](std::size_t) { body(); };
    Threads threads;
    threads.begin(std::max<std::size_t>(wanted, 1) - 1, work);
    threads.guard(body);
    threads.finish();
}

inline int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace weft
