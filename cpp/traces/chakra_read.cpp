#include "traces/chakra_read.h"

#include <algorithm>
#include <bit>

#include "traces/wire.h"

namespace weft::chakra {
namespace {

using wire::Reader;

std::uint64_t read_bits(Reader& reader, wire::Type type) {
    if (type == wire::fixed64) return reader.fixed<std::uint64_t>();
    return type == wire::fixed32 ? reader.fixed<std::uint32_t>() : reader.varint();
}

// A 32-bit field keeps the low half of whatever number was written.
std::int64_t decoded(Base base, std::uint64_t bits) {
    switch (base) {
        case Base::int32:
        case Base::sfixed32:
            return static_cast<std::int32_t>(bits);
        case Base::uint32:
        case Base::fixed32:
            return static_cast<std::uint32_t>(bits);
        case Base::sint32:
            return wire::unzigzag(static_cast<std::uint32_t>(bits));
        case Base::sint64:
            return wire::unzigzag(bits);
        case Base::boolean:
            return bits != 0;
        default:
            return static_cast<std::int64_t>(bits);
    }
}

void read_value(Reader& reader, Base base, Attribute& into) {
    if (is_text(base)) {
        into.texts.emplace_back(reader.text());
        return;
    }
    const std::uint64_t bits = read_bits(reader, wire_type(base));
    if (base == Base::real64)
        into.reals.push_back(std::bit_cast<double>(bits));
    else if (base == Base::real32)
        into.reals.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    else
        into.ints.push_back(decoded(base, bits));
}

// A list message: repeated field 1, packed or one by one.
void read_list(Reader reader, Base base, Attribute& into) {
    const std::uint32_t type = wire_type(base);
    while (!reader.done()) {
        const std::uint32_t tag = reader.tag();
        if (tag == (1u << 3 | type)) {
            read_value(reader, base, into);
        } else if (tag == (1u << 3 | wire::bytes)) {
            for (Reader values = reader.message(); !values.done();) read_value(values, base, into);
        } else {
            reader.skip(tag);
        }
    }
}

void forget_value(Attribute& attribute) {
    attribute.kind = 0;
    attribute.ints.clear();
    attribute.reals.clear();
    attribute.texts.clear();
}

}  // namespace

// Of several values the last counts, but two lists of one kind are one list: so says protobuf.
void read_attribute(Reader reader, Attribute& into) {
    into.name.clear();
    forget_value(into);
    while (!reader.done()) {
        const std::uint32_t tag = reader.tag(), field = tag >> 3;
        if (tag == wire::tag(1, wire::bytes)) {
            into.name = reader.text();
            continue;
        }
        const bool value = field >= first_kind && field <= last_kind;
        const std::uint32_t type = !value           ? 0
                                   : is_list(field) ? std::uint32_t{wire::bytes}
                                                    : wire_type(base_of(field));
        if (!value || (tag & 7) != type) {
            reader.skip(tag);
            continue;
        }
        if (!is_list(field) || into.kind != field) forget_value(into);
        into.kind = field;
        if (is_list(field))
            read_list(reader.message(), base_of(field), into);
        else
            read_value(reader, base_of(field), into);
    }
}

namespace {

Metadata read_metadata(Reader reader) {
    Metadata metadata;
    while (!reader.done()) {
        const std::uint32_t tag = reader.tag();
        if (tag == wire::tag(1, wire::bytes))
            metadata.version = reader.text();
        else if (tag == wire::tag(2, wire::bytes))
            read_attribute(reader.message(), metadata.attributes.emplace_back());
        else
            reader.skip(tag);
    }
    return metadata;
}

// An attribute of the last of the nodes, if it has a column; `attribute` is room for it.
void read_known(Reader& reader, Nodes& nodes, Attribute& attribute) {
    const Reader at = reader;
    read_attribute(reader.message(), attribute);
    if (attribute.name == group_attribute && attribute.kind == kind_of(Base::text))
        nodes.set_group(attribute.texts[0]);
    for (std::uint8_t k = 0; k < known_count; ++k) {
        if (attribute.name != known_attributes[k].name) continue;
        const auto value = integer_of(attribute);
        if (!value) at.fail("attribute " + attribute.name + " is not an integer of 63 bits");
        nodes.set(static_cast<Known>(k), *value);
    }
}

}  // namespace

Reader next_frame(Reader& reader) {
    const Reader at = reader;
    Reader length = reader;
    if (length.varint(); length.offset() - reader.offset() > 5)
        at.fail("the length of a message has more than 5 bytes");
    return reader.message();
}

Trace read_trace(std::string_view file, bool with_names) {
    Trace trace;
    Reader reader(file);
    if (reader.done()) reader.fail("the file is empty; expected GlobalMetadata");
    trace.metadata = read_metadata(next_frame(reader));
    Nodes& nodes = trace.nodes;
    Attribute attribute;  // reused: a node's attributes then take no memory of their own
    while (!reader.done()) {
        nodes.add(0, NodeType{});
        const auto rest = [&](std::uint32_t tag, Reader& field) {
            if (tag == wire::tag(10, wire::bytes))
                read_known(field, nodes, attribute);
            else
                field.skip(tag);
        };
        const NodeHead head = read_node(next_frame(reader), nodes, rest);
        nodes.id.back() = head.id;
        nodes.type.back() = head.type;
        nodes.start.back() = head.start;
        nodes.duration.back() = head.duration;
        if (with_names) nodes.names.emplace_back(head.name);
    }
    return trace;
}

}  // namespace weft::chakra
