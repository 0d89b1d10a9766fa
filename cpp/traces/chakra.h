// One rank's Chakra execution trace as flat arrays, and the numbers of the public schema.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
    switch (base) {
        case Base::real64:
        case Base::fixed64:
        case Base::sfixed64:
            return wire::fixed64;
        case Base::real32:
        case Base::fixed32:
        case Base::sfixed32:
            return wire::fixed32;
        case Base::text:
        case Base::blob:
            return wire::bytes;
        default:
            return wire::varint;
    }
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

struct Metadata {
    std::string version;
    std::vector<Attribute> attributes;
};

// Nodes a node waits for, by id: those of node i are ids[offsets[i]] .. ids[offsets[i + 1] - 1].
struct Waits {
    std::vector<std::int64_t> offsets{0};
    std::vector<std::uint64_t> ids;

    void close() { offsets.push_back(static_cast<std::int64_t>(ids.size())); }
};

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

    // A node without dependencies yet: add them to `ctrl` and `data`, then close both.
    void add(std::uint64_t number, NodeType kind) {
        id.push_back(number);
        type.push_back(kind);
        start.push_back(0);
        duration.push_back(0);
        present.push_back(0);
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
