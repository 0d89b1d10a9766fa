// Attempts side by side, of which one is kept: the same on any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "planners/schedule.h"

namespace weft {

template <class T>
void lower(std::atomic<T>& least, T value) {
    for (T seen = least; value < seen && !least.compare_exchange_weak(seen, value);) {
    }
}

// The first of make(0) .. make(count - 1) that takes no longer than `enough`, else the shortest,
// the first among equals. Those behind one that is short enough need not be made.
template <class Make>
Schedule first_or_best(std::size_t count, int threads, ps enough, Make make) {
    std::vector<Schedule> made(count);
    std::atomic<std::size_t> met{count};
    in_parallel(count, threads, [&](std::size_t i) {
        if (i > met) return;  // an earlier one will be taken
        made[i] = make(i);
        if (made[i].time <= enough) lower(met, i);
    });
    if (met < count) return std::move(made[met]);
    return std::move(
        *std::min_element(made.begin(), made.end(),
                          [](const Schedule& a, const Schedule& b) { return a.time < b.time; }));
}

}  // namespace weft
