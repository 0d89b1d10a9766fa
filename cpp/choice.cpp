#include "choice.h"

#include <bit>

// One build of the loops below for each vector width; the loader picks at start-up.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WEFT_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WEFT_VECTOR_CLONES
#endif

namespace weft {
namespace {

constexpr int max_counter_bits = 32;

}  // namespace

// For 512 chunks at a time, how many onward NPUs lack each is counted in bit-sliced counters:
// counter[b] holds bit b of all 512 counts, and adding a set is a ripple of carries. The largest
// count among the candidates is then read off from the top bit down.
WEFT_VECTOR_CLONES
Candidates most_wanted(const std::uint64_t* have, const std::uint64_t* claimed,
                       std::span<const std::uint64_t* const> onward, std::uint32_t blocks,
                       std::uint32_t first_block) {
    Candidates best;
    const int sets = static_cast<int>(onward.size());
    std::uint64_t counter[max_counter_bits][words_per_block];
    for (std::uint32_t i = 0; i < blocks; ++i) {
        const std::uint32_t block =
            first_block + i < blocks ? first_block + i : first_block + i - blocks;
        const std::size_t at = static_cast<std::size_t>(block) * words_per_block;
        std::uint64_t bits[words_per_block], any = 0;
        for (std::uint32_t w = 0; w < words_per_block; ++w) {
            bits[w] = have[at + w] & ~claimed[at + w];
            any |= bits[w];
        }
        if (!any) continue;

        int width = 0;
        for (int s = 0; s < sets; ++s) {
            const std::uint64_t* set = onward[s] + at;
            std::uint64_t carry[words_per_block];
            for (std::uint32_t w = 0; w < words_per_block; ++w) carry[w] = ~set[w];
            const int reach = static_cast<int>(std::bit_width(static_cast<unsigned>(s + 1)));
            if (reach > width) {
                for (std::uint32_t w = 0; w < words_per_block; ++w) counter[width][w] = 0;
                width = reach;
            }
            for (int b = 0; b < reach; ++b)
                for (std::uint32_t w = 0; w < words_per_block; ++w) {
                    const std::uint64_t sum = counter[b][w] ^ carry[w];
                    carry[w] &= counter[b][w];
                    counter[b][w] = sum;
                }
        }

        int level = 0;
        for (int b = width - 1; b >= 0; --b) {
            std::uint64_t kept[words_per_block], some = 0;
            for (std::uint32_t w = 0; w < words_per_block; ++w) {
                kept[w] = bits[w] & counter[b][w];
                some |= kept[w];
            }
            if (!some) continue;
            for (std::uint32_t w = 0; w < words_per_block; ++w) bits[w] = kept[w];
            level |= 1 << b;
        }
        if (level <= best.wanted_by) continue;
        best.wanted_by = level;
        best.block = block;
        for (std::uint32_t w = 0; w < words_per_block; ++w) best.bits[w] = bits[w];
        if (level == sets) break;
    }
    return best;
}

}  // namespace weft
