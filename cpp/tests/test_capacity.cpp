#include <doctest/doctest.h>

#include <vector>

#include "bounds/capacity.h"

using namespace weft;

namespace {

// One chunk at 100, another every 50: 10 bytes each at 10^12 / 5 bytes per second.
const LinkClass link_class{
    .opens = 50, .first = 100, .gap = 50, .overhead = 0, .bandwidth = 200'000'000'000};

}  // namespace

TEST_CASE("whole chunks cross one after the other") {
    const std::vector<LinkClass> link_classes{link_class};
    CHECK(time_for_chunks(link_classes, {1, 10, 10}) == 100);
    CHECK(time_for_chunks(link_classes, {4, 40, 10}) == 250);
}

TEST_CASE("links alike count as many") {
    std::vector<LinkClass> two{link_class, link_class};
    std::vector<LinkClass> alike{link_class};
    alike[0].alike = 2;
    for (const std::int64_t chunks : {1, 2, 3, 7})
        CHECK(time_for_chunks(two, {chunks, 10.0 * chunks, 10}) ==
              time_for_chunks(alike, {chunks, 10.0 * chunks, 10}));
    CHECK(time_for_chunks(alike, {4, 40, 10}) == 150);
}

TEST_CASE("bytes that may be cut at will take no longer than whole chunks") {
    const std::vector<LinkClass> link_classes{link_class};
    std::vector<LinkClass> opened{link_class};
    opened[0].first = 50;  // latency alone
    for (const std::int64_t chunks : {1, 5, 100})
        CHECK(time_for_bytes(opened, 10.0 * chunks) <=
              time_for_chunks(link_classes, {chunks, 10.0 * chunks, 10}));
}
