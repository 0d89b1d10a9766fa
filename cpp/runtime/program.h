// What one rank does in a run, as columns: one row for each send, receive and local copy or sum.
#pragma once

#include <cstdint>
#include <span>

namespace weft::runtime {

enum class What : std::int32_t { send, receive, local };

// Rows stand in an order that all ranks agree on: whatever a row waits for comes before it.
//
// Where data lies is counted in cells, each of which is written and read a known number of times.
// A row that reads a cell waits until it was written `read_after` times; one that writes a cell
// until it was written `written_after` times and read `free_after` times.
struct Program {
    std::span<const std::int32_t> what, peer, queue;
    std::span<const std::int32_t> from_buffer, base_buffer, to_buffer;
    std::span<const std::int64_t> from, base, to, length;  // in elements
    std::span<const std::uint8_t> combines;                // adds to `base`, else copies
    std::span<const std::int32_t> read_cell, write_cell;   // -1: none
    std::span<const std::int32_t> read_after, written_after, free_after;
    // Rows that must be over before each row, by number.
    std::span<const std::int64_t> after_offsets, after;

    std::size_t size() const { return what.size(); }
};

}  // namespace weft::runtime
