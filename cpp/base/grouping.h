// Lists by key, packed one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace weft {

// The items of key k are items[offsets[k]] .. items[offsets[k + 1] - 1].
template <class Item>
struct Grouped {
    std::vector<std::int64_t> offsets{0};
    std::vector<Item> items;

    std::span<const Item> operator[](std::int64_t key) const {
        return {items.data() + offsets[key], items.data() + offsets[key + 1]};
    }
    // What was added to the items since is the next key's.
    void close() { offsets.push_back(static_cast<std::int64_t>(items.size())); }
};

// `each` hands every key, in [0, keys), with its item to what it is given; it is asked twice. Items
// of one key stay in the order in which they come.
template <class Item>
Grouped<Item> grouped(std::size_t keys, const auto& each) {
    Grouped<Item> groups;
    groups.offsets.assign(keys + 1, 0);
    each([&](auto key, auto) { ++groups.offsets[key + 1]; });
    std::partial_sum(groups.offsets.begin(), groups.offsets.end(), groups.offsets.begin());
    groups.items.resize(static_cast<std::size_t>(groups.offsets.back()));
    std::vector<std::int64_t> next(groups.offsets.begin(), groups.offsets.end() - 1);
    each([&](auto key, auto item) { groups.items[next[key]++] = static_cast<Item>(item); });
    return groups;
}

}  // namespace weft
