// Which chunk to send: the one that most NPUs beyond the receiver still lack.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/chunk_sets.h"

namespace weft {

// The most wanted candidates: the chunks of one block for which the bits are set.
struct Candidates {
    int wanted_by = -1;  // how many onward NPUs lack them; -1 if there is no candidate at all
    std::uint32_t block = 0;
    std::uint64_t bits[words_per_block] = {};
};

// Among the chunks in `have` and not in `claimed`, finds a block with those that the most of
// `onward` (sets of claimed chunks) lack. Looks at the blocks in a circle from `first_block` and
// stops early at chunks that all of them lack.
Candidates most_wanted(const std::uint64_t* have, const std::uint64_t* claimed,
                       std::span<const std::uint64_t* const> onward, std::uint32_t blocks,
                       std::uint32_t first_block);

// How many copies there are of each chunk, in bit-sliced counters as below: kept up to date, they
// make it cheap to find the rarest of many. For networks where everyone meets: there how many lack
// a chunk follows from the number of its copies.
class CopyCounts {
  public:
    CopyCounts(std::int32_t chunks, std::int32_t most_copies);
    void add(std::uint32_t chunk);

    // Among the chunks in `have` and not in `claimed`, a block with those of the fewest copies.
    Candidates rarest(const std::uint64_t* have, const std::uint64_t* claimed,
                      std::uint32_t first_block) const;

  private:
    std::uint32_t blocks_;
    int width_;
    std::vector<std::uint64_t> bits_;  // by block, bit of the count, word
};

// Of the candidates the one with the fewest copies; a few are looked at, from a word of the block
// on.
std::int64_t rarest(const Candidates& found, std::span<const std::uint32_t> copies,
                    std::uint32_t first_word);

}  // namespace weft
