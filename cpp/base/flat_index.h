// Numbers for keys, in the order in which they are first seen: a hash table without nodes, since
// one allocation a key costs more than all else that is done with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

class FlatIndex {
  public:
    // The number of a key below 2^64 - 1.
    std::int32_t of(std::uint64_t key) {
        if (2 * (count_ + 1) > entries_.size()) grow();
        Entry& entry = find(key);
        if (entry.key == none) entry = {key, static_cast<std::int32_t>(count_++)};
        return entry.number;
    }
    std::size_t size() const { return count_; }

  private:
    static constexpr std::uint64_t none = ~std::uint64_t{0};
    struct Entry {
        std::uint64_t key = none;
        std::int32_t number = 0;
    };

    Entry& find(std::uint64_t key) {
        const std::size_t mask = entries_.size() - 1;
        std::uint64_t mixed = key * 0x9e3779b97f4a7c15u;  // spreads keys that follow each other
        mixed ^= mixed >> 32;
        auto at = static_cast<std::size_t>(mixed) & mask;
        while (entries_[at].key != none && entries_[at].key != key) at = (at + 1) & mask;
        return entries_[at];
    }

    void grow() {
        std::vector<Entry> old(entries_.empty() ? 64 : 2 * entries_.size());
        old.swap(entries_);
        for (const Entry& entry : old)
            if (entry.key != none) find(entry.key) = entry;
    }

    std::vector<Entry> entries_;  // a power of two, at most half of them taken
    std::size_t count_ = 0;
};

}  // namespace weft
