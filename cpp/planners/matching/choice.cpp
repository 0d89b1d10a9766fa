#include "planners/matching/choice.h"

#include <bit>
#include <cstring>

#include "base/vectors.h"

namespace weft {
namespace {

constexpr int max_counter_bits = 32;

typedef Block BlockInRow __attribute__((aligned(8), may_alias));

WEFT_INLINE const BlockInRow& block_at(const std::uint64_t* row, std::size_t at) {
    return *reinterpret_cast<const BlockInRow*>(row + at);
}

}  // namespace

// For 512 chunks at a time, how many onward NPUs lack each is counted in bit-sliced counters.
WEFT_VECTOR_CLONES
Candidates most_wanted(const std::uint64_t* have, const std::uint64_t* claimed,
                       std::span<const std::uint64_t* const> onward, std::uint32_t blocks,
                       std::uint32_t first_block) {
    Candidates best;
    const int sets = static_cast<int>(onward.size());
    Block counter[max_counter_bits], chosen{};
    for (std::uint32_t i = 0; i < blocks; ++i) {
        const std::uint32_t block =
            first_block + i < blocks ? first_block + i : first_block + i - blocks;
        const std::size_t at = static_cast<std::size_t>(block) * words_per_block;
        Block bits = block_at(have, at) & ~block_at(claimed, at);
        if (!any(bits)) continue;

        int width = 0;
        for (int s = 0; s < sets; ++s) {
            const int reach = std::bit_width(static_cast<unsigned>(s + 1));
            if (reach > width) counter[width++] = Block{};
            add_set(counter, reach, ~block_at(onward[s], at));
        }
        const int level = keep_largest(counter, width, bits);
        if (level <= best.wanted_by) continue;
        best.wanted_by = level;
        best.block = block;
        chosen = bits;
        if (level == sets) break;
    }
    std::memcpy(best.bits, &chosen, sizeof best.bits);
    return best;
}

CopyCounts::CopyCounts(std::int32_t chunks, std::int32_t most_copies)
    : blocks_((static_cast<std::uint32_t>(chunks) + 511) / 512),
      width_(std::bit_width(static_cast<unsigned>(most_copies))),
      bits_(static_cast<std::size_t>(blocks_) * width_ * words_per_block, 0) {}

void CopyCounts::add(std::uint32_t chunk) {
    auto* word = bits_.data() + static_cast<std::size_t>(chunk / 512) * width_ * words_per_block +
                 chunk % 512 / 64;
    for (auto carry = std::uint64_t{1} << (chunk % 64); carry; word += words_per_block) {
        const auto both = *word & carry;
        *word ^= carry;
        carry = both;
    }
}

WEFT_VECTOR_CLONES
Candidates CopyCounts::rarest(const std::uint64_t* have, const std::uint64_t* claimed,
                              std::uint32_t first_block) const {
    Candidates best;
    Block chosen{};
    int fewest = 0;
    for (std::uint32_t i = 0; i < blocks_; ++i) {
        const std::uint32_t block =
            first_block + i < blocks_ ? first_block + i : first_block + i - blocks_;
        const std::size_t at = static_cast<std::size_t>(block) * words_per_block;
        Block bits = block_at(have, at) & ~block_at(claimed, at);
        if (!any(bits)) continue;
        int copies = 0;
        for (int b = width_ - 1; b >= 0; --b) {
            const Block kept = bits & ~block_at(bits_.data(), (at * width_) + b * words_per_block);
            if (any(kept))
                bits = kept;
            else
                copies |= 1 << b;
        }
        if (best.wanted_by >= 0 && copies >= fewest) continue;
        fewest = copies;
        best.wanted_by = 0;
        best.block = block;
        chosen = bits;
    }
    std::memcpy(best.bits, &chosen, sizeof best.bits);
    return best;
}

std::int64_t rarest(const Candidates& found, std::span<const std::uint32_t> copies,
                    std::uint32_t first_word) {
    constexpr int enough = 4;
    std::int64_t best = -1;
    std::uint32_t fewest = ~std::uint32_t{0};
    for (std::uint32_t i = 0, seen = 0; i < words_per_block && seen < enough; ++i) {
        const auto word = (first_word + i) % words_per_block;
        for (auto bits = found.bits[word]; bits && seen < enough; bits &= bits - 1, ++seen) {
            const auto chunk = (found.block * words_per_block + word) * 64 +
                               static_cast<std::uint32_t>(std::countr_zero(bits));
            if (copies[chunk] < fewest) fewest = copies[chunk], best = chunk;
        }
    }
    return best;
}

}  // namespace weft
