// One bitset over chunks for each NPU, block by block of 512 chunks: in a block the sets of all
// NPUs lie side by side. Who looks at the same block of one NPU after the other reads memory in
// order.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/chunk_sets.h"

namespace weft {

inline constexpr std::uint32_t chunks_per_block = 64 * words_per_block;

class BlockSets {
  public:
    BlockSets(std::int32_t npus, std::uint32_t blocks)
        : npus_(npus), bytes_(static_cast<std::size_t>(npus) * blocks * words_per_block *
                              sizeof(std::uint64_t)) {
        // Zeroed by the system. Blocks far apart are read in turn: large pages spare misses.
        void* got =
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (got == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
        madvise(got, bytes_, MADV_HUGEPAGE);
#endif
        words_ = static_cast<std::uint64_t*>(got);
    }
    BlockSets(const BlockSets&) = delete;
    BlockSets& operator=(const BlockSets&) = delete;
    ~BlockSets() { munmap(words_, bytes_); }

    std::uint64_t* block(std::uint32_t number, std::int32_t npu) {
        return words_ + (static_cast<std::size_t>(number) * npus_ + npu) * words_per_block;
    }
    const std::uint64_t* block(std::uint32_t number, std::int32_t npu) const {
        return const_cast<BlockSets*>(this)->block(number, npu);
    }
    bool has(std::int32_t npu, std::uint32_t chunk) const {
        return block(chunk / chunks_per_block, npu)[chunk / 64 % words_per_block] >> (chunk % 64) &
               1;
    }
    void add(std::int32_t npu, std::uint32_t chunk) {
        block(chunk / chunks_per_block, npu)[chunk / 64 % words_per_block] |= std::uint64_t{1}
                                                                              << (chunk % 64);
    }

  private:
    std::size_t npus_, bytes_;
    std::uint64_t* words_;
};

}  // namespace weft
