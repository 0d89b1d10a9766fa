// One rank's Chakra execution trace as flat arrays, and the numbers of the public schema.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/grouping.h"
#include "traces/wire.h"

namespace weft::chakra {

enum NodeType : std::int32_t { comp = 4, comm_send = 5, comm_recv = 6, comm_coll = 7 };

// The integer attributes of a node that have a column. To read one more, add it here.
enum Known : std::uint8_t {
    comm_src,
    comm_dst,
    comm_size,
    comm_tag,
    msg_chunk_cnt,
    msg_chunk_idx,
    total_chunk_cnt,
    comm_type,
    is_cpu_op,
    known_count
};
inline constexpr std::string_view group_attribute = "pg_name";

// What an attribute can hold. The schema's field is 3 + 2 * base for one value and the next
// number for a list of them.
enum class Base : std::uint32_t {
    real64,
    real32,
    int32,
    int64,
    uint32,
    uint64,
    sint32,
    sint64,
    fixed32,
    fixed64,
    sfixed32,
    sfixed64,
    boolean,
    text,
    blob
};
constexpr std::uint32_t first_kind = 3;
constexpr std::uint32_t kind_of(Base base, bool list = false) {
    return first_kind + 2 * static_cast<std::uint32_t>(base) + (list ? 1 : 0);
}
constexpr Base base_of(std::uint32_t kind) { return static_cast<Base>((kind - first_kind) / 2); }
constexpr bool is_list(std::uint32_t kind) { return (kind - first_kind) % 2 == 1; }
constexpr std::uint32_t last_kind = kind_of(Base::blob, true);
constexpr bool is_real(Base base) { return base == Base::real64 || base == Base::real32; }
constexpr bool is_text(Base base) { return base == Base::text || base == Base::blob; }

constexpr wire::Type wire_type(Base base) {
    if (is_text(base)) return wire::bytes;
    if (base == Base::real64 || base == Base::fixed64 || base == Base::sfixed64)
        return wire::fixed64;
    if (base == Base::real32 || base == Base::fixed32 || base == Base::sfixed32)
        return wire::fixed32;
    return wire::varint;
}

struct KnownAttribute {
    std::string_view name;
    Base base;  // as the older readers want it; any integer is read
};
inline constexpr std::array<KnownAttribute, known_count> known_attributes{{
    {"comm_src", Base::int32},
    {"comm_dst", Base::int32},
    {"comm_size", Base::int64},
    {"comm_tag", Base::int32},
    {"msg_chunk_cnt", Base::int32},
    {"msg_chunk_idx", Base::int32},
    {"total_chunk_cnt", Base::int32},
    {"comm_type", Base::int64},
    {"is_cpu_op", Base::boolean},
}};

// An attribute: `kind` is its field in the schema (0: none), and one of the three has its values.
// Unsigned 64-bit values keep their bits.
struct Attribute {
    std::string name;
    std::uint32_t kind = 0;
    std::vector<std::int64_t> ints;
    std::vector<double> reals;
    std::vector<std::string> texts;
};

// The value of an attribute that is one integer of 63 bits.
inline std::optional<std::int64_t> integer_of(const Attribute& attribute) {
    if (attribute.ints.size() != 1 || is_list(attribute.kind)) return std::nullopt;
    const Base base = base_of(attribute.kind);
    const bool wide = base == Base::uint64 || base == Base::fixed64;
    if (wide && attribute.ints[0] < 0) return std::nullopt;
    return attribute.ints[0];
}

struct Metadata {
    std::string version;
    std::vector<Attribute> attributes;
};

// The ids of the nodes that each node waits for.
using Waits = Grouped<std::uint64_t>;

struct Nodes {
    std::vector<std::uint64_t> id;
    std::vector<std::int32_t> type;
    Waits ctrl, data;
    std::vector<std::uint64_t> start, duration;  // microseconds
    std::vector<std::uint16_t> present;          // bit k: the node has attribute k of Known
    // By Known; a column ends after the last node that has the attribute, since most have few.
    std::array<std::vector<std::int64_t>, known_count> known;
    std::vector<std::string> names;   // empty: each node has the short name of its type
    std::vector<std::string> groups;  // pg_name, "" if a node has none; ends as `known` does

    std::size_t size() const { return id.size(); }

    bool has(std::size_t node, Known attribute) const { return present[node] >> attribute & 1; }

    // A node without dependencies yet: add them to `ctrl` and `data`, then close it.
    void add(std::uint64_t number, NodeType kind) {
        id.push_back(number);
        type.push_back(kind);
        start.push_back(0);
        duration.push_back(0);
        present.push_back(0);
    }
    void close() {
        ctrl.close();
        data.close();
    }
    void set(Known attribute, std::int64_t value) {
        known[attribute].resize(size());
        known[attribute].back() = value;
        present.back() |= static_cast<std::uint16_t>(1u << attribute);
    }
    void set_group(std::string_view name) {
        groups.resize(size());
        groups.back() = name;
    }
};

}  // namespace weft::chakra
