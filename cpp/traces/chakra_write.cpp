#include "traces/chakra_write.h"

#include <algorithm>
#include <cstring>

#include "traces/wire.h"

namespace weft::chakra {
namespace {

using wire::append_varint;
using wire::put_varint;
using wire::varint_size;

void append_tag(std::string& out, std::uint32_t field, wire::Type type) {
    append_varint(out, wire::tag(field, type));
}

void append_text(std::string& out, std::uint32_t field, std::string_view text) {
    append_tag(out, field, wire::bytes);
    append_varint(out, text.size());
    out.append(text);
}

template <class T>
void append_raw(std::string& out, T value) {
    char room[sizeof(T)];
    std::memcpy(room, &value, sizeof(T));
    out.append(room, sizeof(T));
}

void append_integer(std::string& out, Base base, std::int64_t value) {
    const bool zigzag = base == Base::sint32 || base == Base::sint64;
    if (wire_type(base) == wire::fixed64)
        append_raw(out, value);
    else if (wire_type(base) == wire::fixed32)
        append_raw(out, static_cast<std::int32_t>(value));
    else
        append_varint(out, zigzag ? wire::zigzag(value) : static_cast<std::uint64_t>(value));
}

// The values of an attribute back to back, without tags: what a packed list holds.
std::string packed(const Attribute& attribute) {
    const Base base = base_of(attribute.kind);
    std::string out;
    for (const std::int64_t value : attribute.ints) append_integer(out, base, value);
    for (const double value : attribute.reals) {
        if (base == Base::real32)
            append_raw(out, static_cast<float>(value));
        else
            append_raw(out, value);
    }
    return out;
}

std::string list_message(const Attribute& attribute) {
    std::string out;
    for (const auto& text : attribute.texts) append_text(out, 1, text);
    const std::string values = packed(attribute);
    if (!values.empty()) append_text(out, 1, values);
    return out;
}

std::string attribute_message(const Attribute& attribute) {
    std::string out;
    if (!attribute.name.empty()) append_text(out, 1, attribute.name);
    if (attribute.kind == 0) return out;
    if (is_list(attribute.kind)) {
        append_text(out, attribute.kind, list_message(attribute));
    } else if (is_text(base_of(attribute.kind))) {
        append_text(out, attribute.kind, attribute.texts.at(0));
    } else {
        append_tag(out, attribute.kind, wire_type(base_of(attribute.kind)));
        out += packed(attribute);
    }
    return out;
}

// A known attribute up to its value: all but two lengths of a node's attribute is constant.
struct Prefix {
    char bytes[24];
    std::uint8_t size;  // of the bytes: tag, room for the length, name, tag of the value
};

Prefix prefix_of(const KnownAttribute& attribute) {
    std::string out;
    append_tag(out, 10, wire::bytes);
    out.push_back(0);
    append_text(out, 1, attribute.name);
    append_tag(out, kind_of(attribute.base), wire::varint);
    Prefix prefix{{}, static_cast<std::uint8_t>(out.size())};
    std::memcpy(prefix.bytes, out.data(), out.size());
    return prefix;
}

std::string_view short_name(std::int32_t type) {
    static constexpr std::string_view names[] = {"comp", "send", "recv", "coll"};
    return type >= comp && type <= comm_coll ? names[type - comp] : "";
}

char* put_number(char* out, std::uint32_t field, std::uint64_t value) {
    if (value == 0) return out;
    return put_varint(put_varint(out, wire::tag(field, wire::varint)), value);
}

char* put_waits(char* out, std::uint32_t field, const Waits& waits, std::size_t node) {
    const auto ids = waits[node];
    if (ids.empty()) return out;
    std::size_t size = 0;
    for (const auto id : ids) size += varint_size(id);
    out = put_varint(put_varint(out, wire::tag(field, wire::bytes)), size);
    for (const auto id : ids) out = put_varint(out, id);
    return out;
}

char* put_known(char* out, const Prefix& prefix, std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    std::memcpy(out, prefix.bytes, sizeof prefix.bytes);
    out[1] = static_cast<char>(prefix.size - 2 + varint_size(bits));  // of name and value
    return put_varint(out + prefix.size, bits);
}

char* put_text(char* out, std::uint32_t field, std::string_view text) {
    out = put_varint(put_varint(out, wire::tag(field, wire::bytes)), text.size());
    std::memcpy(out, text.data(), text.size());
    return out + text.size();
}

char* put_group(char* out, std::string_view name) {
    const Attribute group{
        std::string(group_attribute), kind_of(Base::text), {}, {}, {std::string(name)}};
    return put_text(out, 10, attribute_message(group));
}

class NodeWriter {
  public:
    explicit NodeWriter(const Nodes& nodes) : nodes_(nodes) {
        std::ranges::transform(known_attributes, prefixes_.begin(), prefix_of);
    }

    // More than node i can take.
    std::size_t room(std::size_t i) const {
        const std::size_t waits = nodes_.ctrl[i].size() + nodes_.data[i].size();
        return 128 + name(i).size() + group(i).size() +
               known_count * (sizeof(Prefix) + wire::most_varint) + waits * wire::most_varint;
    }

    char* put(char* out, std::size_t i) const {
        char* body = out + 1;  // most nodes take less than 128 bytes: one byte of length
        char* end = put_body(body, i);
        const auto size = static_cast<std::size_t>(end - body);
        const std::size_t extra = varint_size(size) - 1;
        if (extra > 0) std::memmove(body + extra, body, size);
        put_varint(out, size);
        return end + extra;
    }

  private:
    std::string_view name(std::size_t i) const {
        return nodes_.names.empty() ? short_name(nodes_.type[i]) : nodes_.names[i];
    }
    std::string_view group(std::size_t i) const {
        return i < nodes_.groups.size() ? std::string_view(nodes_.groups[i]) : std::string_view();
    }

    char* put_body(char* out, std::size_t i) const {
        out = put_number(out, 1, nodes_.id[i]);
        if (const auto text = name(i); !text.empty()) out = put_text(out, 2, text);
        out = put_number(out, 3, static_cast<std::uint64_t>(std::int64_t{nodes_.type[i]}));
        out = put_waits(out, 4, nodes_.ctrl, i);
        out = put_waits(out, 5, nodes_.data, i);
        out = put_number(out, 6, nodes_.start[i]);
        out = put_number(out, 7, nodes_.duration[i]);
        for (std::size_t k = 0; k < known_count; ++k)
            if (nodes_.has(i, static_cast<Known>(k)))
                out = put_known(out, prefixes_[k], nodes_.known[k][i]);
        if (!group(i).empty()) out = put_group(out, group(i));
        return out;
    }

    const Nodes& nodes_;
    std::array<Prefix, known_count> prefixes_;
};

}  // namespace

void write_metadata(std::string& out, const Metadata& metadata) {
    std::string body;
    if (!metadata.version.empty()) append_text(body, 1, metadata.version);
    for (const auto& attribute : metadata.attributes)
        append_text(body, 2, attribute_message(attribute));
    append_varint(out, body.size());
    out += body;
}

void write_nodes(std::string& out, const Nodes& nodes) {
    const NodeWriter writer(nodes);
    std::vector<char> block(1 << 16);
    std::size_t used = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const std::size_t room = writer.room(i);
        if (block.size() - used < room) {
            out.append(block.data(), used);
            used = 0;
            if (block.size() < room) block.resize(room);
        }
        used = static_cast<std::size_t>(writer.put(block.data() + used, i) - block.data());
    }
    out.append(block.data(), used);
}

}  // namespace weft::chakra
