#include <doctest/doctest.h>

#include <vector>

#include "base/calendar.h"
#include "base/random.h"

using namespace weft;

TEST_CASE("gaps are found between intervals, which are half open") {
    Calendar link;
    CHECK(link.next_gap(5, 10) == 5);
    link.take(10, 10);
    link.take(30, 10);
    CHECK(link.next_gap(0, 10) == 0);
    CHECK(link.next_gap(0, 11) == 40);
    CHECK(link.next_gap(12, 10) == 20);
    link.take(20, 10);  // joins both sides
    CHECK(link.next_gap(10, 1) == 40);
}

TEST_CASE("a calendar agrees with a table of all moments") {
    constexpr ps horizon = 4000;
    std::vector<bool> taken(2 * horizon);
    Calendar link;
    Random random(7);
    for (int i = 0; i < 500; ++i) {
        const ps from = static_cast<ps>(random.below(horizon));
        const ps length = 1 + static_cast<ps>(random.below(9));
        ps expected = from;
        for (ps run = 0; run < length;) {
            run = taken[expected + run] ? (expected += run + 1, 0) : run + 1;
        }
        REQUIRE(link.next_gap(from, length) == expected);
        link.take(expected, length);
        for (ps t = expected; t < expected + length; ++t) taken[t] = true;
    }
}

TEST_CASE("a route fits where each of its links is free at its own time") {
    Calendars calendars(2);
    const std::vector<std::int32_t> links{0, 1};
    const std::vector<Hold> holds{{0, 10}, {5, 10}};
    calendars.take(links, holds, 0);
    CHECK(calendars.first_fit(links, holds, 0) == 10);
    CHECK(calendars.first_fit(std::vector<std::int32_t>{1}, std::vector<Hold>{{0, 5}}, 0) == 0);
}
