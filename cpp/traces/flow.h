// What the messages of a trace carry, found by following what its nodes wait for.
//
// The nodes of all ranks are numbered one rank after the other. A message is a COMM_SEND and the
// COMM_RECV that takes it. Messages carry parts: pieces of data that are never cut further.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::trace {

struct Graph {
    std::span<const std::int32_t> npu;             // of each node
    std::span<const std::int64_t> offsets, waits;  // the nodes each node waits for
    std::span<const std::uint8_t> carries;         // each wait: for data, not only for order
    std::span<const std::int64_t> message;         // of each node; -1: it computes
    std::span<const std::int64_t> send, recv;      // nodes of each message
    std::span<const std::int64_t> bytes;           // of each message

    std::int64_t nodes() const { return static_cast<std::int64_t>(npu.size()); }
    std::int64_t messages() const { return static_cast<std::int64_t>(bytes.size()); }
};

// Steps from the start to each node, over waits and messages. If the nodes can never all run,
// `stuck` is one that waits for itself over others.
struct Levels {
    std::vector<std::int32_t> level;
    std::int64_t stuck = -1;
};
Levels find_levels(const Graph& graph);

// How data flows. In `spread` a part starts on one NPU, and a COMM_SEND passes on what it waits
// for: copies. `collect` is its mirror image: a part ends on one NPU, and what a COMM_RECV brings
// is what later COMM_SENDs pass on, and what stays: sums for one, or shares handed out.
// `collect_and_spread` is one after the other: messages that have everybody's contribution spread.
enum class Direction : std::int32_t { spread, collect, collect_and_spread };

enum class Fault : std::int32_t {
    none,
    mixed_source,  // a COMM_SEND waits for more than it sends, and no choice is the only one
    mixed_use,     // what a COMM_RECV brings is passed on in pieces that do not add up
    unlike,        // two nodes that should have the same parts have others
    too_many,      // messages have more parts in all than memory is spent on
};

struct Flow {
    Fault fault = Fault::none;
    std::int64_t node = -1, found = 0;  // where, and how many bytes there are instead

    std::vector<std::int64_t> offsets{0};  // the parts of each message
    std::vector<std::int32_t> parts;
    std::vector<std::int32_t> part_npu;  // where the part starts, or ends if it is collected
    std::vector<std::int64_t> part_bytes;
    std::vector<std::int32_t> node_part;  // of nodes that compute on one part alone; else -1
    // Sums: whose contributions a message may have, `words` words each, and whether all.
    std::vector<std::uint64_t> contributors;
    std::vector<std::uint8_t> complete;
};

// `rank` is each NPU's number among those that contribute, or -1; `ranks` how many there are, 0 if
// nothing is summed. Without `find_parts` only contributors are found.
Flow follow(const Graph& graph, const Levels& levels, std::span<const std::int32_t> rank,
            std::int32_t ranks, Direction direction, bool find_parts);

}  // namespace weft::trace
