// Threads that work in step: all of them finish a phase before any begins the next.
#pragma once

#include <barrier>
#include <cstddef>
#include <latch>
#include <optional>

#include "base/threads.h"

namespace weft {

// What a member of a team knows of it.
struct Place {
    int number, size;
    std::barrier<>& all;
    void wait() { all.arrive_and_wait(); }
};

// Calls work(Place) once on each of up to `threads` threads, as many as the system grants, the
// caller's among them; before that, begin(how many there are) once. `work` must not throw: the
// others would wait for it.
template <class Begin, class Work>
void as_team(int threads, const Begin& begin, const Work& work) {
    std::latch formed(1);
    std::optional<std::barrier<>> all;
    int size = 1;
    bool begun = false;
    const auto join = [&](std::size_t number) {
        formed.wait();
        if (begun) work(Place{static_cast<int>(number), size, *all});
    };
    Threads helpers;
    size +=
        static_cast<int>(helpers.begin(static_cast<std::size_t>(std::max(threads, 1) - 1), join));
    helpers.guard([&] {
        all.emplace(size);
        begin(size);
        begun = true;
    });
    formed.count_down();
    if (begun) work(Place{0, size, *all});
    helpers.finish();
}

}  // namespace weft
