// An algorithm's nodes on one rank, ready to be put into a workload's trace many times.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/chakra_plan.h"

namespace weft::chakra {

// One rank's share of an algorithm. Nodes are numbered from 0; what a node reads of this rank's
// own data waits for the start of the collective, nothing else does.
struct Share {
    struct Step {
        NodeType type;
        std::int32_t peer, tag;
        std::int64_t size;
        bool reduce;
        bool own;  // reads this rank's own data
    };
    std::vector<Step> steps;
    Waits data, ctrl;  // nodes each waits for
    // The nodes after which this rank has all it must have, and has read all it had to give.
    std::vector<std::uint64_t> last;

    // How many ids a copy takes.
    std::uint64_t ids(bool member) const { return steps.size() + (member ? 1 : 0); }
};

// `tag`: by row.
Share share_of(Nodes nodes, const Transfers& table, const Chunks& chunks,
               std::span<const std::int32_t> tag, std::int32_t rank);

// Appends a copy of the nodes as whole frames. With the frame of a COMM_COLL they stand for it: a
// node waits for what it waited for, and a node with its id ends the copy. Without, this rank only
// passes on.
void write_share(std::string& out, const Share& share, std::uint64_t first_id,
                 std::int32_t first_tag, std::string_view frame);

}  // namespace weft::chakra
