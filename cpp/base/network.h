// The network for the kernels: nodes (NPUs first, then switches) and directed links.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/cost.h"

namespace weft {

// Compressed rows: the items of row r are items[offsets[r]] .. items[offsets[r + 1] - 1].
struct RowsView {
    std::span<const std::int64_t> offsets;
    std::span<const std::int32_t> items;

    std::int32_t size() const {
        return offsets.empty() ? 0 : static_cast<std::int32_t>(offsets.size()) - 1;
    }
    std::span<const std::int32_t> operator[](std::int64_t row) const {
        return items.subspan(offsets[row], offsets[row + 1] - offsets[row]);
    }
};

// The same with rows of its own.
struct Rows {
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> items;

    std::int32_t size() const { return static_cast<std::int32_t>(offsets.size()) - 1; }
    std::span<const std::int32_t> operator[](std::int64_t row) const {
        return {items.data() + offsets[row], items.data() + offsets[row + 1]};
    }
    operator RowsView() const { return {offsets, items}; }
    void close() { offsets.push_back(static_cast<std::int64_t>(items.size())); }
};

// Rows of item numbers grouped by key, in ascending order of item: keys[i] in [0, count).
Rows group_by(std::span<const std::int32_t> keys, std::int32_t count);

struct Network {
    std::int32_t npus = 0;
    std::int32_t switches = 0;
    std::vector<std::int32_t> src, dst;
    std::vector<Speed> speed;
    std::vector<std::int64_t> buffer;  // of each switch, in bytes; none stands for `unlimited`
    std::vector<std::uint8_t> copies;  // of each switch: whether it copies; none if none does
    std::vector<std::uint8_t> adds;    // likewise: whether it adds
    Rows out, in;                      // links by source, by destination

    // `speed` need not name buffers: links get those of the switches they end in.
    Network(std::int32_t npus, std::int32_t switches, std::vector<std::int32_t> src,
            std::vector<std::int32_t> dst, std::vector<Speed> speed,
            std::vector<std::int64_t> buffer, std::vector<std::uint8_t> copies,
            std::vector<std::uint8_t> adds);

    // Every link turned round; numbers stay. Copying backwards is adding, and adding is copying.
    Network reversed() const { return {npus, switches, dst, src, speed, buffer, adds, copies}; }

    std::int32_t nodes() const { return npus + switches; }
    std::int32_t links() const { return static_cast<std::int32_t>(src.size()); }
    bool is_switch(std::int32_t node) const { return node >= npus; }
    bool copies_at(std::int32_t node) const {
        return is_switch(node) && !copies.empty() && copies[node - npus];
    }
    bool adds_at(std::int32_t node) const {
        return is_switch(node) && !adds.empty() && adds[node - npus];
    }
    std::int64_t buffer_of(std::int32_t node) const {
        return is_switch(node) && !buffer.empty() ? buffer[node - npus] : unlimited;
    }
};

}  // namespace weft
