// One bitset over chunks for each NPU, in one flat array; rows padded to whole blocks of 512 bits
// so that loops over a row vectorise without a tail.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

inline constexpr std::uint32_t words_per_block = 8;

class ChunkSets {
  public:
    ChunkSets(std::int32_t npus, std::int32_t chunks)
        : blocks_((static_cast<std::uint32_t>(chunks) + 511) / 512),
          bits_(static_cast<std::size_t>(npus) * blocks_ * words_per_block, 0) {}

    std::uint32_t blocks() const { return blocks_; }
    const std::uint64_t* row(std::int32_t npu) const { return bits_.data() + start(npu); }
    bool has(std::int32_t npu, std::uint32_t chunk) const {
        return bits_[start(npu) + chunk / 64] >> (chunk % 64) & 1;
    }
    void add(std::int32_t npu, std::uint32_t chunk) {
        bits_[start(npu) + chunk / 64] |= std::uint64_t{1} << (chunk % 64);
    }

  private:
    std::size_t start(std::int32_t npu) const {
        return static_cast<std::size_t>(npu) * blocks_ * words_per_block;
    }
    std::uint32_t blocks_;
    std::vector<std::uint64_t> bits_;
};

}  // namespace weft
