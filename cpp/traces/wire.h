// Protocol-buffer wire format: the few primitives a trace is made of, checked at every byte.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weft::wire {

enum Type : std::uint32_t {
    varint = 0,
    fixed64 = 1,
    bytes = 2,
    group = 3,
    group_end = 4,
    fixed32 = 5
};

constexpr std::uint32_t tag(std::uint32_t field, Type type) { return field << 3 | type; }

constexpr std::uint64_t zigzag(std::int64_t value) {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t bits) {
    return static_cast<std::int64_t>(bits >> 1 ^ (~(bits & 1) + 1));
}

constexpr std::size_t varint_size(std::uint64_t value) {
    return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}
constexpr std::size_t most_varint = 10;

// Writes at `out` and returns the end; the caller has made room for `most_varint` bytes.
inline char* put_varint(char* out, std::uint64_t value) {
    while (value >= 0x80) {
        *out++ = static_cast<char>(value | 0x80);
        value >>= 7;
    }
    *out++ = static_cast<char>(value);
    return out;
}

inline void append_varint(std::string& out, std::uint64_t value) {
    char room[most_varint];
    out.append(room, put_varint(room, value));
}

// Walks over one message; every step checks the end of it. Errors name the byte in the file.
class Reader {
  public:
    Reader(std::string_view file) : start_(file.data()), at_(start_), end_(start_ + file.size()) {}

    bool done() const { return at_ == end_; }
    std::size_t offset() const { return static_cast<std::size_t>(at_ - start_); }
    std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

    [[noreturn]] void fail(const std::string& what) const {
        throw std::invalid_argument("byte " + std::to_string(offset()) + ": " + what);
    }

    std::uint64_t varint() {
        std::uint64_t value = 0;
        const char* at = at_;
        for (unsigned shift = 0; shift < 70; shift += 7) {
            if (at == end_) fail("the file ends inside a number");
            const auto byte = static_cast<std::uint8_t>(*at++);
            value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) {
                at_ = at;
                return value;
            }
        }
        fail("a number has more than 10 bytes");
    }

    std::uint32_t tag() {
        const char* at = at_;
        const std::uint64_t value = varint();
        if (value >> 32 || value < 8) {
            at_ = at;
            fail("this is no field of a message");
        }
        return static_cast<std::uint32_t>(value);
    }

    template <class T>
    T fixed() {
        if (left() < sizeof(T)) fail("the file ends inside a number");
        T value;
        std::memcpy(&value, at_, sizeof(T));
        at_ += sizeof(T);
        return value;
    }

    std::string_view text() {
        const char* at = at_;
        const std::uint64_t size = varint();
        if (size > left()) {
            at_ = at;
            fail("a length of " + std::to_string(size) + " bytes, but only " +
                 std::to_string(left()) + " are left");
        }
        const char* begin = at_;
        at_ += size;
        return {begin, static_cast<std::size_t>(size)};
    }

    // The message inside this one that starts here; this reader moves past it.
    Reader message() {
        const std::string_view inside = text();
        Reader reader = *this;
        reader.at_ = inside.data();
        reader.end_ = inside.data() + inside.size();
        return reader;
    }

    // Passes over the value of a field nobody asked for.
    void skip(std::uint32_t tag, int depth = 0) {
        const std::uint32_t type = tag & 7;
        if (type == Type::varint)
            varint();
        else if (type == Type::fixed64)
            fixed<std::uint64_t>();
        else if (type == Type::bytes)
            text();
        else if (type == Type::fixed32)
            fixed<std::uint32_t>();
        else if (type == Type::group)
            skip_group(tag, depth);
        else
            fail("this is no field of a message");
    }

  private:
    void skip_group(std::uint32_t open, int depth) {
        if (depth == 100) fail("groups are nested too deeply");
        const std::uint32_t close = (open & ~7u) | group_end;
        for (std::uint32_t inner = tag(); inner != close; inner = tag()) skip(inner, depth + 1);
    }

    const char* start_;
    const char* at_;
    const char* end_;
};

static_assert(std::endian::native == std::endian::little, "fixed-size fields are little-endian");

}  // namespace weft::wire
