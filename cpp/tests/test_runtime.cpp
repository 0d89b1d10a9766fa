// Channels between threads, which stand for processes: bytes come whole, in order, and in time.
#include <doctest/doctest.h>

#include <numeric>
#include <thread>

#include "runtime/execution.h"
#include "runtime/rings.h"

namespace weft::runtime {
namespace {

constexpr std::size_t room = 1 << 10;

struct Columns {
    std::vector<std::int32_t> what, peer, queue, from_buffer, base_buffer, to_buffer;
    std::vector<std::int64_t> from, base, to, length;
    std::vector<std::uint8_t> combines;
    std::vector<std::int32_t> read_cell, write_cell, read_after, written_after, free_after;
    std::vector<std::int64_t> after_offsets{0}, after;

    void add(What kind, std::int64_t first, std::int64_t count, bool sums, std::int32_t cell,
             std::int32_t read) {
        what.push_back(static_cast<std::int32_t>(kind));
        peer.push_back(0);
        for (auto* column : {&queue, &from_buffer, &base_buffer, &to_buffer, &free_after})
            column->push_back(0);
        for (auto* column : {&from, &base, &to}) column->push_back(first);
        length.push_back(count);
        combines.push_back(sums);
        const bool sends = kind == What::send;
        read_cell.push_back(sends ? cell : -1);
        write_cell.push_back(sends ? -1 : cell);
        read_after.push_back(read);
        written_after.push_back(0);
        free_after.back() = sends ? 0 : read;
        after_offsets.push_back(0);
    }
    Program view() const {
        return {what,       peer,          queue,      from_buffer, base_buffer,
                to_buffer,  from,          base,       to,          length,
                combines,   read_cell,     write_cell, read_after,  written_after,
                free_after, after_offsets, after};
    }
};

// Rank 0 hands a number around `turns` times; each time rank 1 adds what it has.
Columns handed(std::int32_t rank, std::int32_t turns, std::int64_t count) {
    Columns columns;
    for (std::int32_t turn = 0; turn < turns; ++turn) {
        const bool sends = turn % 2 == rank;
        const std::int32_t before = turn / 2 + (rank == 1 && sends ? 1 : 0);
        columns.add(sends ? What::send : What::receive, 0, count, rank == 1, 0, before);
        columns.peer.back() = 1 - rank;
    }
    return columns;
}

State run(std::int32_t rank, std::span<std::byte> memory, std::vector<std::int64_t>& data,
          std::int32_t turns, Key key) {
    Rings rings(memory, rank, 2, room, {});
    const Columns columns = handed(rank, turns, static_cast<std::int64_t>(data.size()));
    const auto bytes = std::as_writable_bytes(std::span(data));
    Execution execution(columns.view(), {bytes}, Type::i64, Op::sum, rings, key, true);
    return execution.advance(Clock::now() + std::chrono::seconds(60));
}

std::vector<std::byte> shared() { return std::vector<std::byte>(Rings::bytes(2, room) + 64); }

std::span<std::byte> aligned(std::vector<std::byte>& memory) {
    const auto place = reinterpret_cast<std::uintptr_t>(memory.data());
    return std::span(memory).subspan((64 - place % 64) % 64);
}

}  // namespace

TEST_CASE("two ranks hand data to and fro through rings smaller than the data") {
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{3000}}) {
        auto memory = shared();
        std::vector<std::int64_t> first(count), second(count);
        std::iota(first.begin(), first.end(), 1);
        second = first;
        State other{};
        std::thread thread([&] { other = run(1, aligned(memory), second, 20, Key{}); });
        const State one = run(0, aligned(memory), first, 20, Key{});
        thread.join();
        CHECK(one == State::done);
        CHECK(other == State::done);
        // Rank 1 adds what comes back: x, 2x, 4x, ... after ten turns 1024 x.
        for (std::size_t i = 0; i < count; ++i)
            REQUIRE(first[i] == 1024 * static_cast<std::int64_t>(i + 1));
    }
}

TEST_CASE("ranks with other keys do not take each other's data") {
    auto memory = shared();
    std::vector<std::int64_t> first(5, 1), second(5, 2);
    std::thread thread([&] {
        Rings rings(aligned(memory), 1, 2, room, {});
        const Columns columns = handed(1, 1, 5);
        Key key{};
        key[31] = std::byte{1};
        Execution execution(columns.view(), {std::as_writable_bytes(std::span(second))}, Type::i64,
                            Op::sum, rings, key, false);
        CHECK(execution.advance(Clock::now() + std::chrono::seconds(60)) == State::disagreeing);
        CHECK(execution.peer() == 0);
    });
    CHECK(run(0, aligned(memory), first, 1, Key{}) == State::done);  // it only sends
    thread.join();
    CHECK(second == std::vector<std::int64_t>(5, 2));
}

TEST_CASE("a row that leaves its buffer is refused") {
    auto memory = shared();
    Rings rings(aligned(memory), 0, 2, room, {});
    std::vector<std::int64_t> data(4);
    const auto bytes = std::as_writable_bytes(std::span(data));
    for (const auto& [first, count] : {std::pair{0, 5}, {-1, 2}, {4, 1}, {0, -1}}) {
        Columns columns;
        columns.add(What::send, first, count, false, 0, 0);
        columns.peer.back() = 1;
        CHECK_THROWS_AS(Execution(columns.view(), {bytes}, Type::i64, Op::sum, rings, Key{}, false),
                        std::out_of_range);
    }
}

}  // namespace weft::runtime
