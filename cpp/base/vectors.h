// Bits of 512 chunks at a time, in the widest vectors that the machine has.
#pragma once

#include <cstdint>

#include "base/chunk_sets.h"

// One build of a function for each vector width; the loader picks at start-up. Sanitizers cannot
// follow it there.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(WEFT_SANITIZE)
#define WEFT_VECTOR_CLONES \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WEFT_VECTOR_CLONES
#endif
// What such a function calls must be built with it.
#define WEFT_INLINE inline __attribute__((always_inline))

namespace weft {

typedef std::uint64_t Block __attribute__((vector_size(8 * words_per_block)));

WEFT_INLINE bool any(const Block& block) {
    typedef std::uint64_t Half __attribute__((vector_size(4 * words_per_block)));
    typedef std::uint64_t Quarter __attribute__((vector_size(2 * words_per_block)));
    const Half half = __builtin_shufflevector(block, block, 0, 1, 2, 3) |
                      __builtin_shufflevector(block, block, 4, 5, 6, 7);
    const Quarter quarter =
        __builtin_shufflevector(half, half, 0, 1) | __builtin_shufflevector(half, half, 2, 3);
    return (quarter[0] | quarter[1]) != 0;
}

// Bit-sliced counters: counter[b] holds bit b of all 512 counts. Adding a set is a ripple of
// carries through `bits` of them.
WEFT_INLINE void add_set(Block* counter, int bits, Block carry) {
    for (int b = 0; b < bits; ++b) {
        const Block both = counter[b] & carry;
        counter[b] ^= carry;
        carry = both;
    }
}

// Of the chunks those with the largest count, read off from the top bit down; and that count.
WEFT_INLINE int keep_largest(const Block* counter, int bits, Block& chunks) {
    int count = 0;
    for (int b = bits - 1; b >= 0; --b) {
        const Block kept = chunks & counter[b];
        if (!any(kept)) continue;
        chunks = kept;
        count |= 1 << b;
    }
    return count;
}

}  // namespace weft
