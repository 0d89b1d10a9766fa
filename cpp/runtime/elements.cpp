#include "runtime/elements.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace weft::runtime {
namespace {

// Floats of 16 bits are words here, added as floats of 32 bits and rounded to nearest, ties to
// even.
struct Half {
    std::uint16_t bits;
};
struct Brain {
    std::uint16_t bits;
};

float widened(Brain word) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(word.bits) << 16);
}

float widened(Half word) {
    const std::uint32_t sign = static_cast<std::uint32_t>(word.bits & 0x8000u) << 16;
    const std::uint32_t rest = word.bits & 0x7fffu;
    // Exponents of halves are moved by a multiplication, which makes subnormal ones normal too.
    constexpr float scale = 0x1p112f;
    const float value = std::bit_cast<float>(rest << 13) * scale;
    const std::uint32_t bits =
        rest >= 0x7c00u ? 0x7f800000u | rest << 13 : std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<float>(sign | bits);
}

void narrow(float value, Brain& word) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    const std::uint32_t quiet = bits >> 16 | 0x40u;
    word.bits = static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

void narrow(float value, Half& word) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    // Below the least normal half the addition of a half does the rounding.
    const float small = std::bit_cast<float>(rest) + 0.5f;
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(small) - 0x3f000000u;
    const std::uint32_t normal = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
    const std::uint32_t large = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const std::uint32_t found = rest < 0x38800000u   ? subnormal
                                : rest < 0x477ff000u ? normal
                                                     : large;
    word.bits = static_cast<std::uint16_t>(sign | found);
}

template <class T>
T load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

template <Op op, class T>
T of_two(T a, T b) {
    if constexpr (op == Op::min) return b < a || b != b ? b : a;
    if constexpr (op == Op::max) return a < b || b != b ? b : a;
    if constexpr (std::is_integral_v<T>) {
        // Unsigned numbers wrap around, as all machines do; wide ones, so that none is promoted.
        const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
        return static_cast<T>(op == Op::sum ? x + y : x * y);
    } else {
        return op == Op::sum ? a + b : a * b;
    }
}

template <class T>
constexpr bool is_word = std::is_same_v<T, Half> || std::is_same_v<T, Brain>;

template <Op op, class T>
void combine_all(std::byte* to, const std::byte* base, const std::byte* other, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const auto a = load<T>(base + i * sizeof(T)), b = load<T>(other + i * sizeof(T));
        T found;
        if constexpr (is_word<T>)
            narrow(of_two<op>(widened(a), widened(b)), found);
        else
            found = of_two<op>(a, b);
        std::memcpy(to + i * sizeof(T), &found, sizeof found);
    }
}

template <class T>
void divide_all(std::byte* at, std::size_t count, std::int64_t by) {
    for (std::size_t i = 0; i < count; ++i) {
        auto value = load<T>(at + i * sizeof(T));
        if constexpr (is_word<T>)
            narrow(widened(value) / static_cast<float>(by), value);
        else if constexpr (std::is_signed_v<T> || std::is_floating_point_v<T>)
            value = static_cast<T>(
                value /
                static_cast<std::conditional_t<std::is_floating_point_v<T>, T, std::int64_t>>(by));
        else
            value = static_cast<T>(value / static_cast<std::uint64_t>(by));
        std::memcpy(at + i * sizeof(T), &value, sizeof value);
    }
}

// Calls call(T{}) for the type that is meant.
template <class Call>
auto of_type(Type type, const Call& call) {
    switch (type) {
        case Type::f16:
            return call(Half{});
        case Type::bf16:
            return call(Brain{});
        case Type::f32:
            return call(float{});
        case Type::f64:
            return call(double{});
        case Type::i8:
            return call(std::int8_t{});
        case Type::i16:
            return call(std::int16_t{});
        case Type::i32:
            return call(std::int32_t{});
        case Type::i64:
            return call(std::int64_t{});
        case Type::u8:
            return call(std::uint8_t{});
        case Type::u16:
            return call(std::uint16_t{});
        case Type::u32:
            return call(std::uint32_t{});
        default:
            return call(std::uint64_t{});
    }
}

}  // namespace

std::size_t size_of(Type type) {
    return of_type(type, [](auto one) { return sizeof one; });
}

void combine(Type type, Op op, std::byte* to, const std::byte* base, const std::byte* other,
             std::size_t count) {
    of_type(type, [&](auto one) {
        using T = decltype(one);
        switch (op) {
            case Op::sum:
                return combine_all<Op::sum, T>(to, base, other, count);
            case Op::product:
                return combine_all<Op::product, T>(to, base, other, count);
            case Op::min:
                return combine_all<Op::min, T>(to, base, other, count);
            default:
                return combine_all<Op::max, T>(to, base, other, count);
        }
    });
}

void divide(Type type, std::byte* at, std::size_t count, std::int64_t by) {
    of_type(type, [&](auto one) { divide_all<decltype(one)>(at, count, by); });
}

}  // namespace weft::runtime
