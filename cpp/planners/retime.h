// Exact times for transfers whose order is known: each starts as soon as it may.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/tables.h"

namespace weft {

struct Times {
    std::vector<ps> start, end;  // per row
};

// Rows come in an order in which none waits for a later one, with their planned starts: rows of one
// chunk that leave one NPU at one time over one link are a multicast, and stay one; so are parts of
// a sum that reach one NPU at one time over one link, where switches add.
//
// Each row starts when what it reads has arrived (all earlier rows that bring its chunk to its
// source) and its links are free, in gaps that earlier rows left or after them. Where every route
// is one link and no chunk is longer than planned, no row is later than planned.
Times retime(const Timing& timing, const Transfers& rows,
             std::span<const std::int64_t> chunk_bytes);

// The same rows pushed together: as late as they may from the end, then as early as they may.
// Chunks are all of `bytes`. Returns the new times, or the planned ones if these end no later or
// there is a multicast or a sum in a switch, which pushing would tear apart; `order` says in which
// order the rows start.
Times tighten(const Timing& timing, const Transfers& rows, std::int64_t bytes,
              std::vector<std::int32_t>& order);

}  // namespace weft
