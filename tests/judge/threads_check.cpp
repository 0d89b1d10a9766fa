// What work throws on any thread reaches the caller; see test_starved.py.
#include <cstdio>
#include <new>

#include "base/parallel.h"
#include "base/team.h"
#include "judge/parts.h"

using namespace weft;

struct Worker {
    void operator()(std::int64_t begin, std::int64_t, judge::First&) {
        if (begin >= 3) throw std::bad_alloc();
    }
};

template <class Call>
bool starves(Call call) {
    try {
        call();
    } catch (const std::bad_alloc&) {
        return true;
    }
    return false;
}

int main() {
    const auto fail = [](auto...) { throw std::bad_alloc(); };
    const auto no_worker = []() -> Worker { throw std::bad_alloc(); };
    if (!starves([&] { in_parallel(100, 4, fail); })) return 1;
    if (!starves([] { judge::in_blocks<Worker>(1000, 1, [] { return Worker{}; }); })) return 2;
    if (!starves([&] { judge::in_blocks<Worker>(1000, 1, no_worker); })) return 3;
    if (!starves([&] { as_team(4, fail, [](Place) {}); })) return 4;
    int size = 0;
    std::atomic<int> sum{0};
    const auto work = [&](Place place) {
        place.wait();
        sum += place.number;
        place.wait();
    };
    as_team(4, [&](int members) { size = members; }, work);
    std::printf("%d\n", size);
    return sum == size * (size - 1) / 2 ? 0 : 5;
}
