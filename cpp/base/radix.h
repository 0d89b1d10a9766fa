// A stable order of rows by time: digit by digit, since comparing costs more than counting.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/cost.h"

namespace weft {

// Row numbers in ascending order of `key` (no key is negative), equal keys in order of number.
inline std::vector<std::int32_t> order_by(const std::vector<ps>& key) {
    constexpr int digit_bits = 11;
    constexpr std::size_t digits = std::size_t{1} << digit_bits;
    std::vector<std::int32_t> order(key.size()), next(key.size());
    std::iota(order.begin(), order.end(), 0);
    const ps largest = key.empty() ? 0 : *std::max_element(key.begin(), key.end());
    for (int shift = 0; shift < 63 && (largest >> shift) > 0; shift += digit_bits) {
        auto digit = [&](std::int32_t row) {
            return static_cast<std::size_t>(key[row] >> shift) & (digits - 1);
        };
        std::array<std::size_t, digits> place{};
        for (auto row : order) ++place[digit(row)];
        std::exclusive_scan(place.begin(), place.end(), place.begin(), std::size_t{0});
        for (auto row : order) next[place[digit(row)]++] = row;
        order.swap(next);
    }
    return order;
}

}  // namespace weft
