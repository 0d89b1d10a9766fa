// One rank's trace of a workload, cut in frames: its collectives, where their bytes lie, and what
// must be known of the other nodes so that new ones can stand beside them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/chakra.h"

namespace weft::chakra {

constexpr std::int64_t absent = -1;

// The columns have one entry a COMM_COLL, in the order in which they are issued: what is ready
// and has the lowest id goes first.
struct Frames {
    std::vector<std::uint64_t> id;
    std::vector<std::int64_t> begin, end;  // bytes of the frame in the file, its length included
    std::vector<std::int64_t> kind, size;  // comm_type and comm_size; `absent` if not there
    std::vector<std::int32_t> group;       // which of `group_names` is its pg_name, or `absent`

    std::vector<std::string> group_names;   // each once
    std::vector<std::string> group_inputs;  // inputs.values of nodes that set up process groups
    std::vector<std::int64_t> tags;         // of messages from and to this rank, each once
    std::int64_t nodes = 0;
    std::uint64_t last_id = 0;
};

// Throws std::invalid_argument naming byte or node: a file that is no trace, an id used twice, a
// dependency that dangles, a cycle, an attribute of a COMM_COLL of the wrong kind.
Frames read_frames(std::string_view file);

}  // namespace weft::chakra
