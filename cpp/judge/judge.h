// The judge: whether an algorithm does what it claims. Trusts nothing, shares no code with any
// synthesizer. It only finds; `weft.verify` puts the finding into words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/tables.h"

namespace weft::judge {

// All an algorithm claims, as views of its columns; the lengths of those present have been checked.
struct Claim {
    std::int32_t npus = 0;
    Transfers rows;
    bool timed = false;  // route, start and end are there, and so is `timing`
    Chunks chunks;
    const Timing* timing = nullptr;
    std::span<const std::uint8_t> removed;  // one per NPU; empty if none is

    std::int64_t row_count() const { return static_cast<std::int64_t>(rows.size()); }
    bool has_places() const { return !rows.src_place.empty() || !rows.dst_place.empty(); }
};

// What can be wrong. `other` and `detail` of a violation are named beside each.
enum class Code {
    demand_npu,      // a demand includes an NPU that is not there
    chunk_range,     // other: the chunk's number
    npu_range,       // other: the NPU's number
    npu_removed,     // other: the NPU's number
    out_of_reach,    // other: the NPU's number; the chunk may not go there
    place_range,     // other: the place
    not_reduction,   // a `reduce` row of a chunk that is not summed
    dep_range,       // other: the row it depends on; not an earlier one
    dep_offsets,     // the offsets of the dependencies do not rise from 0 to their number
    routes_broken,   // the table of routes; other: the first bad route
    route_range,     // other: the route
    route_broken,    // other: the route; links do not follow, or an NPU lies in the middle
    route_ends,      // other, detail: the nodes the route really joins (-1: it is empty)
    buffer_full,     // other: the switch; detail: its buffer, which the whole chunk must fit
    negative_start,  // other: the start
    duration,        // other: the end claimed; detail: the end by the cost model
    dep_late,        // other: the row it depends on; detail: when that ends
    link_taken,      // other: the row that holds it; detail: until when; link
    never_held,      // npu sends chunk and never has it
    held_late,       // other: when it has it (the row that brings it, if in row order)
    wrong_chunk,     // the place read holds chunk `other`
    mixed,           // the place added to holds chunk `other`
    never_received,  // npu must end with chunk and has nothing
    wrong_at_end,    // npu ends with chunk `other` where chunk belongs
    missing,         // npu ends without the contribution of NPU `other`
    twice,           // npu ends with the contribution of NPU `other` twice
    too_large,       // contribution sets would take `other` bytes
};

struct Violation {
    Code code;
    // Found when the rows are run one after the other, not by their times.
    bool in_row_order = false;
    ps time = 0;  // when it happens; `never` at the end; the row if in row order
    std::int64_t row = -1;
    std::int32_t chunk = -1, npu = -1, link = -1;
    std::int64_t other = -1, detail = -1;
};

// The first violation, or none. Structure is judged before times, times before what happens in
// time, and that before what happens in row order; within each the earliest comes first, then the
// lowest row, at the end the lowest chunk and NPU. Does not depend on the number of threads.
std::optional<Violation> judge(const Claim& claim);

}  // namespace weft::judge
