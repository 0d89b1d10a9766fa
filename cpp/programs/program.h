// From a program of thread blocks to a table of transfers.
//
// A program moves data between cells (slots of buffers on NPUs). What runs at the same time is not
// ordered, so a cell may be read too early or overwritten too soon; such races are found here. The
// transfers come out in an order in which they could run one after the other, each with the chunk
// it moves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "programs/order.h"

namespace weft::program {

// Action a copies (or adds) cell src[a] to cell dst[a]. It reads in event 2a and writes in event
// 2a + 1, which follows it; events from 2 * actions on do nothing and only keep order.
struct Program {
    std::span<const std::int32_t> src, dst;
    std::span<const std::uint8_t> reduce;
    std::int64_t events = 0;
    Chains chains;
    Edges edges;
    // Which edges are wishes of the author: they become dependencies of rows where data flow does
    // not already demand them.
    std::span<const std::uint8_t> wished;
    // Cells: the NPU they lie on, the place they are called by, the chunk they hold at first (-1:
    // none), and the chunk whose result belongs there, with the place it is then called by (-1:
    // always the first name).
    std::span<const std::int32_t> npu, place, chunk, result, result_place;

    std::int64_t actions() const { return static_cast<std::int64_t>(src.size()); }
};

enum class Wrong { nothing, cycle, empty, race, tangled };

// `events`: those of the cycle; the one that reads an empty cell; the two that are not ordered.
struct Fault {
    Wrong what = Wrong::nothing;
    std::vector<std::int64_t> events;
    std::int32_t cell = -1;
};

struct Linearized {
    std::vector<std::int32_t> chunk, src, dst, src_place, dst_place;
    std::vector<std::uint8_t> reduce;
    std::vector<std::int64_t> action;  // of each row; -1: it says what a result was lost to
    std::vector<std::int32_t> before;  // chunk that the cell written held before, or -1
    std::vector<std::int64_t> dep_offsets{0}, deps;
    Fault fault;
};

Linearized linearize(const Program& program);

}  // namespace weft::program
