// What several threads do together: mostly for the thread sanitizer.
#include <doctest/doctest.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "base/hops.h"
#include "base/parallel.h"
#include "base/team.h"
#include "planners/matching/matching.h"
#include "planners/unicast/unicast.h"

using namespace weft;

namespace {

constexpr std::int64_t chunk_bytes = 1 << 20;

// A ring with a chord, links of two speeds.
Network small_network() {
    std::vector<std::int32_t> src, dst;
    std::vector<Speed> speed;
    const auto both_ways = [&](std::int32_t a, std::int32_t b, std::int64_t bandwidth) {
        for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
            src.push_back(from);
            dst.push_back(to);
            speed.push_back({bandwidth, 500'000});
        }
    };
    for (std::int32_t npu = 0; npu < 6; ++npu) both_ways(npu, (npu + 1) % 6, 50'000'000'000);
    both_ways(0, 3, 25'000'000'000);
    return {6, 0, src, dst, speed, {}, {}, {}};
}

// A table of copied chunks, all alike but for their ends.
struct Table {
    std::vector<std::int64_t> bytes;
    std::vector<std::int32_t> pre, post, reach;
    std::vector<std::uint8_t> reduce;
    Rows sets;

    std::int32_t add_set(const std::vector<std::int32_t>& npus) {
        sets.items.insert(sets.items.end(), npus.begin(), npus.end());
        sets.close();
        return sets.size() - 1;
    }
    void add(std::int32_t from, std::int32_t to) {
        bytes.push_back(chunk_bytes);
        pre.push_back(from);
        post.push_back(to);
        reduce.push_back(0);
        reach.push_back(-1);
    }
    Chunks chunks() const { return {bytes, pre, post, reduce, reach, sets}; }
};

void check_same(const Schedule& a, const Schedule& b) {
    CHECK(a.time < never);
    CHECK(a.time == b.time);
    CHECK(a.chunk == b.chunk);
    CHECK(a.hop == b.hop);
    CHECK(a.start == b.start);
}

}  // namespace

TEST_CASE("every piece of work is done once") {
    std::vector<int> done(1000);
    in_parallel(done.size(), 4, [&](std::size_t i) { ++done[i]; });
    CHECK(done == std::vector<int>(1000, 1));
}

TEST_CASE("what a thread throws reaches the caller") {
    const auto fail = [](std::size_t i) {
        if (i == 50) throw std::runtime_error("fails");
    };
    CHECK_THROWS_WITH(in_parallel(100, 4, fail), "fails");
}

TEST_CASE("a team finishes a phase before it begins the next") {
    std::vector<int> first(8), seen(8);
    as_team(
        4, [](int) {},
        [&](Place place) {
            for (int i = place.number; i < 8; i += place.size) first[i] = i;
            place.wait();
            for (int i = place.number; i < 8; i += place.size) seen[i] = first[7 - i];
        });
    CHECK(seen == std::vector<int>{7, 6, 5, 4, 3, 2, 1, 0});
}

TEST_CASE("planners find the same on any number of threads") {
    const Network network = small_network();
    const CostModel cost;
    const Hops hops = find_hops(network, cost, chunk_bytes);
    const HopTimes times = time_hops(network, hops, cost, chunk_bytes);

    SUBCASE("matching: All-Gather") {
        Table table;
        const auto all = table.add_set({0, 1, 2, 3, 4, 5});
        for (std::int32_t npu = 0; npu < 6; ++npu)
            for (int piece = 0; piece < 2; ++piece) table.add(table.add_set({npu}), all);
        const auto plan = [&](int threads) {
            Progress progress;
            return search_matching(network, hops, times, table.chunks(), {1, 0, threads, progress});
        };
        check_same(plan(1), plan(4));
    }

    SUBCASE("unicast: All-to-All") {
        Table table;
        for (std::int32_t src = 0; src < 6; ++src)
            for (std::int32_t dst = 0; dst < 6; ++dst)
                if (src != dst) table.add(table.add_set({src}), table.add_set({dst}));
        const Unicast unicast = unicast_of(network, hops, cost, table.chunks());
        const auto plan = [&](int threads) {
            Progress progress;
            return plan_unicast(hops, unicast, {1, 0, threads, progress});
        };
        check_same(plan(1), plan(4));
    }
}
