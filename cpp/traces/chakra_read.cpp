#include "traces/chakra_read.h"

#include <algorithm>
#include <bit>

#include "traces/wire.h"

namespace weft::chakra {
namespace {

using wire::Reader;

// A 32-bit field keeps the low half of whatever number was written.
std::int64_t low_signed(std::uint64_t bits) { return static_cast<std::int32_t>(bits); }
std::int64_t low_unsigned(std::uint64_t bits) { return static_cast<std::uint32_t>(bits); }

void read_value(Reader& reader, Base base, Attribute& into) {
    auto& ints = into.ints;
    switch (base) {
        case Base::real64:
            into.reals.push_back(std::bit_cast<double>(reader.fixed64()));
            return;
        case Base::real32:
            into.reals.push_back(std::bit_cast<float>(reader.fixed32()));
            return;
        case Base::int32:
            ints.push_back(low_signed(reader.varint()));
            return;
        case Base::uint32:
            ints.push_back(low_unsigned(reader.varint()));
            return;
        case Base::int64:
        case Base::uint64:
            ints.push_back(static_cast<std::int64_t>(reader.varint()));
            return;
        case Base::sint32:
            ints.push_back(wire::unzigzag(low_unsigned(reader.varint())));
            return;
        case Base::sint64:
            ints.push_back(wire::unzigzag(reader.varint()));
            return;
        case Base::fixed32:
            ints.push_back(low_unsigned(reader.fixed32()));
            return;
        case Base::sfixed32:
            ints.push_back(low_signed(reader.fixed32()));
            return;
        case Base::fixed64:
        case Base::sfixed64:
            ints.push_back(static_cast<std::int64_t>(reader.fixed64()));
            return;
        case Base::boolean:
            ints.push_back(reader.varint() != 0);
            return;
        default:
            into.texts.emplace_back(reader.text());
    }
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

class NodeReader {
  public:
    NodeReader(Nodes& nodes, bool with_names) : nodes_(nodes), with_names_(with_names) {}

    void read(Reader reader) {
        nodes_.add(0, NodeType{});
        if (with_names_) nodes_.names.emplace_back();
        while (!reader.done()) {
            const std::uint32_t tag = reader.tag();
            switch (tag) {
                case wire::tag(1, wire::varint):
                    nodes_.id.back() = reader.varint();
                    break;
                case wire::tag(2, wire::bytes):
                    read_name(reader.text());
                    break;
                case wire::tag(3, wire::varint):
                    nodes_.type.back() = static_cast<std::int32_t>(reader.varint());
                    break;
                case wire::tag(4, wire::varint):
                    nodes_.ctrl.ids.push_back(reader.varint());
                    break;
                case wire::tag(4, wire::bytes):
                    read_waits(reader.message(), nodes_.ctrl);
                    break;
                case wire::tag(5, wire::varint):
                    nodes_.data.ids.push_back(reader.varint());
                    break;
                case wire::tag(5, wire::bytes):
                    read_waits(reader.message(), nodes_.data);
                    break;
                case wire::tag(6, wire::varint):
                    nodes_.start.back() = reader.varint();
                    break;
                case wire::tag(7, wire::varint):
                    nodes_.duration.back() = reader.varint();
                    break;
                case wire::tag(10, wire::bytes):
                    read_known(reader);
                    break;
                default:
                    reader.skip(tag);
            }
        }
        nodes_.ctrl.close();
        nodes_.data.close();
    }

  private:
    void read_name(std::string_view text) {
        if (with_names_) nodes_.names.back() = text;
    }

    static void read_waits(Reader reader, Waits& into) {
        while (!reader.done()) into.ids.push_back(reader.varint());
    }

    void read_known(Reader& reader) {
        const Reader at = reader;
        read_attribute(reader.message(), attribute_);
        if (attribute_.name == group_attribute && attribute_.kind == kind_of(Base::text))
            nodes_.set_group(attribute_.texts[0]);
        for (std::uint8_t k = 0; k < known_count; ++k) {
            if (attribute_.name != known_attributes[k].name) continue;
            const Base base = attribute_.kind ? base_of(attribute_.kind) : Base::text;
            const bool wide = base == Base::uint64 || base == Base::fixed64;
            if (attribute_.ints.size() != 1 || is_list(attribute_.kind) ||
                (wide && attribute_.ints[0] < 0))
                at.fail("attribute " + attribute_.name + " is not an integer of 63 bits");
            nodes_.set(static_cast<Known>(k), attribute_.ints[0]);
        }
    }

    Nodes& nodes_;
    bool with_names_;
    Attribute attribute_;  // reused: a node's attributes then take no memory of their own
};

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
    NodeReader nodes(trace.nodes, with_names);
    while (!reader.done()) nodes.read(next_frame(reader));
    return trace;
}

}  // namespace weft::chakra
