// Reads any trace a protocol-buffer runtime can write, and checks what needs no other rank.
#pragma once

#include <string_view>

#include "traces/chakra.h"

namespace weft::chakra {

struct Trace {
    Metadata metadata;
    Nodes nodes;
};

// The next message of a file; the reader moves past it.
wire::Reader next_frame(wire::Reader& reader);

// An attribute of a node or of the metadata; what `into` held before is forgotten.
void read_attribute(wire::Reader reader, Attribute& into);

// Throws std::invalid_argument naming the byte where the file stops making sense.
Trace read_trace(std::string_view file, bool with_names);

// Throws std::invalid_argument naming the node: an id used twice, a dependency on a node that is
// not there, or a circle of dependencies. Linear in nodes and dependencies.
void check_nodes(const Nodes& nodes);

// The same for nodes with equal ids, types and waits, whatever their order in the file; ids must be
// 0..n-1. Almost surely another for other nodes.
std::uint64_t digest(const Nodes& nodes);

// The first difference from what the nodes should be (ids 0..n-1 in any order of the file), in
// words, or nothing.
std::string first_difference(const Nodes& found, const Nodes& expected);

}  // namespace weft::chakra
