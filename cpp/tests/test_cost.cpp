#include <doctest/doctest.h>

#include <vector>

#include "base/cost.h"

using namespace weft;

TEST_CASE("serialization rounds up") {
    CHECK(serialization(0, 1) == 0);
    CHECK(serialization(1, 1'000'000'000'000) == 1);
    CHECK(serialization(1, 3) == 333'333'333'334);
}

TEST_CASE("serialization needs 128 bits and ends below the clock's end") {
    constexpr std::int64_t gigabyte = 1'000'000'000;
    // 10^9 bytes times 10^12 is past 64 bits.
    CHECK(serialization(gigabyte, gigabyte) == 1'000'000'000'000);
    CHECK(serialization(4'000 * gigabyte, gigabyte) == 4'000'000'000'000'000);
    CHECK(serialization(unlimited, 1) == never / 4);
}

TEST_CASE("one link: bytes over bandwidth plus latency; latency holds the link only if it blocks") {
    const Speed link{1'000'000'000'000, 500};
    Hold hold;
    CHECK(hop({}, 1000, {&link, 1}, {&hold, 1}) == 1500);
    CHECK(hold.length == 1000);
    CHECK(hop({.blocking = true}, 1000, {&link, 1}, {&hold, 1}) == 1500);
    CHECK(hold.length == 1500);
}

TEST_CASE("through a switch: cut-through waits for the slowest link, store-and-forward for each") {
    const std::vector<Speed> links{{1'000'000'000'000, 10}, {500'000'000'000, 20}};
    std::vector<Hold> holds(2);
    CHECK(hop({}, 1000, links, holds) == 2030);
    CHECK(holds[0].offset == 0);
    CHECK(holds[0].length == 1000);
    CHECK(holds[1].length == 2000);
    CHECK(hop({.store_and_forward = true}, 1000, links, holds) == 3030);
    CHECK(holds[1].offset == 1010);
}

TEST_CASE("a small buffer holds the fast link for as long as the slow one takes for the rest") {
    const std::vector<Speed> links{{1'000'000'000'000, 0, 100}, {250'000'000'000, 0}};
    std::vector<Hold> holds(2);
    CHECK(hop({}, 1000, links, holds) == 4000);
    CHECK(holds[0].length == 3600);
}
