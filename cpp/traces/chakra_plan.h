// Which nodes each rank's trace has for a table of transfers.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/tables.h"
#include "traces/chakra.h"

namespace weft::chakra {

// What a reader that starts every send as soon as its data is there must be told besides. Columns
// by row, or empty.
struct Pace {
    std::span<const std::uint8_t> gate;   // whether a COMP stands before the row's send
    std::span<const std::int32_t> after;  // such a gate opens after this row's data came; -1: none
    std::span<const std::int32_t> delay;  // microseconds from a row's arrival to its use
    std::span<const std::int32_t> piece_count, piece_index;  // msg_chunk_cnt, msg_chunk_idx
    std::int32_t pieces = 0;                                 // total_chunk_cnt
};

// Makes the nodes of one rank after the other; takes 8 bytes per row besides the table.
//
// A row is a COMM_SEND on its source and a COMM_RECV on its destination, followed there by a
// COMP if it reduces; a row from an NPU to itself is one COMP. The tag is the row's number.
// A delayed row has a COMP of that duration after its COMM_RECV. Of two sends with gates on one
// NPU, the one that comes `after` the other is started at least one COMP later.
class Plan {
  public:
    // The table must be sound: all numbers in range, dependencies on earlier rows.
    Plan(const Transfers& transfers, std::span<const std::int64_t> chunk_bytes, std::int32_t npus,
         Pace pace = {});

    Nodes nodes(std::int32_t npu);
    // The rows that `npu` sends or copies, ascending.
    std::vector<std::int64_t> sent(std::int32_t npu) const;

  private:
    class Rank;  // makes one rank's nodes

    std::int32_t& writer(std::int32_t place);
    void forget(std::int32_t npu);

    Transfers table_;
    std::span<const std::int64_t> chunk_bytes_;
    Pace pace_;
    Grouped<std::int32_t> rows_;  // those that touch each NPU, ascending
    // Node that last wrote each place of the rank at hand, -1: none. Home places lie in a plain
    // array, others in a map.
    std::vector<std::int32_t> home_writer_;
    std::unordered_map<std::int32_t, std::int32_t> other_writer_;
    // Nodes that have read each place since it was written. Where NPUs only pass chunks on, data
    // that overwrites a place follows from what was read there, so nothing need be kept.
    bool keeps_readers_ = false;
    std::unordered_map<std::int32_t, std::vector<std::int32_t>> readers_;
};

}  // namespace weft::chakra
