#include <doctest/doctest.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/block_sets.h"
#include "base/chunk_sets.h"
#include "base/flat_index.h"
#include "base/network.h"
#include "base/radix.h"
#include "base/random.h"

using namespace weft;

TEST_CASE_TEMPLATE("a set has what was added, for that NPU alone", Sets, ChunkSets, BlockSets) {
    // The second argument counts chunks for one kind, blocks for the other: three blocks both.
    Sets sets(3, std::is_same_v<Sets, ChunkSets> ? 1100 : 3);
    for (const std::uint32_t chunk : {0u, 63u, 64u, 511u, 512u, 1099u}) {
        CHECK_FALSE(sets.has(1, chunk));
        sets.add(1, chunk);
        CHECK(sets.has(1, chunk));
        CHECK_FALSE(sets.has(0, chunk));
        CHECK_FALSE(sets.has(2, chunk));
        CHECK_FALSE(sets.has(1, chunk + 2));
    }
}

TEST_CASE("rows are ordered by time, equal times in order of number") {
    Random random(3);
    for (const std::uint64_t largest : {1ull, 50ull, 1ull << 40, 1ull << 62}) {
        std::vector<ps> key(2000);
        for (auto& time : key) time = static_cast<ps>(random() % largest);
        std::vector<std::int32_t> expected(key.size());
        for (std::size_t i = 0; i < key.size(); ++i) expected[i] = static_cast<std::int32_t>(i);
        std::stable_sort(expected.begin(), expected.end(),
                         [&](auto a, auto b) { return key[a] < key[b]; });
        CHECK(order_by(key) == expected);
    }
    CHECK(order_by({}).empty());
}

TEST_CASE("keys are numbered as they are first seen") {
    FlatIndex index;
    for (std::uint64_t key = 0; key < 1000; ++key) CHECK(index.of(key << 32) == std::int32_t(key));
    for (std::uint64_t key = 0; key < 1000; ++key) CHECK(index.of(key << 32) == std::int32_t(key));
    CHECK(index.size() == 1000);
}

TEST_CASE("items are grouped by key in ascending order") {
    const std::vector<std::int32_t> keys{2, 0, 2, 1, 2};
    const Rows rows = group_by(keys, 4);
    CHECK(rows.offsets == std::vector<std::int64_t>{0, 1, 2, 5, 5});
    CHECK(rows.items == std::vector<std::int32_t>{1, 3, 0, 2, 4});
}
