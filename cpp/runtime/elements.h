// Arithmetic on elements: what a receiver does to the bytes that come.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::runtime {

enum class Type : std::int32_t { f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 };
enum class Op : std::int32_t { sum, product, min, max };

std::size_t size_of(Type type);

// to[i] = op(base[i], other[i]) for `count` elements. `to` may be `base`; `other` need not be
// aligned, for it may lie anywhere in a stream.
void combine(Type type, Op op, std::byte* to, const std::byte* base, const std::byte* other,
             std::size_t count);

// Divides each element by a count of contributions; integers are rounded towards zero.
void divide(Type type, std::byte* at, std::size_t count, std::int64_t by);

}  // namespace weft::runtime
