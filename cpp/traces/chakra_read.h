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

struct NodeHead {
    std::uint64_t id = 0, start = 0, duration = 0;
    std::int32_t type = 0;
    std::string_view name;
};

// The fields of a node that are no attributes; what it waits for is added to `waits.ctrl` and
// `waits.data`. `rest(tag, reader)` reads or skips the value of any other field.
NodeHead read_node(wire::Reader reader, auto& waits, const auto& rest) {
    NodeHead head;
    while (!reader.done()) {
        const std::uint32_t tag = reader.tag();
        const auto read_waits = [&](Waits& into) {
            if ((tag & 7) == wire::varint)
                into.items.push_back(reader.varint());
            else  // all in one
                for (auto ids = reader.message(); !ids.done();) into.items.push_back(ids.varint());
        };
        switch (tag) {
            case wire::tag(1, wire::varint):
                head.id = reader.varint();
                break;
            case wire::tag(2, wire::bytes):
                head.name = reader.text();
                break;
            case wire::tag(3, wire::varint):
                head.type = static_cast<std::int32_t>(reader.varint());
                break;
            case wire::tag(4, wire::varint):
            case wire::tag(4, wire::bytes):
                read_waits(waits.ctrl);
                break;
            case wire::tag(5, wire::varint):
            case wire::tag(5, wire::bytes):
                read_waits(waits.data);
                break;
            case wire::tag(6, wire::varint):
                head.start = reader.varint();
                break;
            case wire::tag(7, wire::varint):
                head.duration = reader.varint();
                break;
            default:
                rest(tag, reader);
        }
    }
    waits.ctrl.close();
    waits.data.close();
    return head;
}

// Throws std::invalid_argument naming the byte where the file stops making sense.
Trace read_trace(std::string_view file, bool with_names);

// The same for nodes with equal ids, types and waits, whatever their order in the file; ids must be
// 0..n-1. Almost surely another for other nodes.
std::uint64_t digest(const Nodes& nodes);

// The first difference from what the nodes should be (ids 0..n-1 in any order of the file), in
// words, or nothing.
std::string first_difference(const Nodes& found, const Nodes& expected);

}  // namespace weft::chakra
