// What each row of an algorithm waits for: the data it passes on, and the memory it writes.
#pragma once

#include <cstdint>
#include <span>

#include "base/tables.h"

namespace weft {

// A table of transfers, and what decides besides it.
struct LogicView : Transfers {
    std::int32_t npus = 0;
    std::span<const std::uint8_t> summed;  // by chunk: whether it is a sum
    // By row, or empty: whether it passes on just what the row before it brought, to a relay.
    std::span<const std::uint8_t> chained;

    std::size_t chunks() const { return summed.size(); }
    bool is_chained(std::size_t row) const { return row < chained.size() && chained[row]; }
};

// Rows and *joins*: nodes without duration that stand for several rows one waits for, so that a sum
// of many parts that is read many times needs no edge for every pair. Nodes 0 .. rows - 1 are rows,
// in the order of the table; joins come after them. No node waits for one that waits for it.
//
// A row waits for what was last written where it reads, with all that was added to it since. What
// it overwrites must have been written and read before, what it adds to must have been written, and
// read by those that wanted it without. Copies of a chunk that is no sum, where the chunk belongs,
// are all alike: the first will do. Then come the row's own dependencies.
struct RowWaits {
    Rows waits;         // per node: the nodes it waits for
    std::int32_t rows;  // how many nodes are rows
    std::int32_t size() const { return waits.size(); }
};

// `end` says when rows are planned to end, if they are: then the earliest of copies that are alike
// will do, and the table's order counts for the others.
RowWaits find_waits(const LogicView& table, std::span<const ps> end);

}  // namespace weft
