#include "planners/sizes.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace weft {
namespace {

constexpr double alike = 1.0 / 64;      // sizes that differ by less are planned as one
constexpr std::size_t most_sizes = 64;  // times of all hops are kept for each

// From the largest down: the first of each class names it.
std::vector<std::int64_t> largest_of_each(const std::vector<std::int64_t>& descending,
                                          double tolerance) {
    std::vector<std::int64_t> result;
    for (auto bytes : descending)
        if (result.empty() ||
            static_cast<double>(bytes) < static_cast<double>(result.back()) * (1 - tolerance))
            result.push_back(bytes);
    return result;
}

}  // namespace

Sizes group_sizes(std::span<const std::int64_t> chunk_bytes) {
    std::vector<std::int64_t> descending(chunk_bytes.begin(), chunk_bytes.end());
    std::sort(descending.begin(), descending.end(), std::greater<>());
    descending.erase(std::unique(descending.begin(), descending.end()), descending.end());
    Sizes sizes;
    double tolerance = alike;
    do {
        sizes.bytes = largest_of_each(descending, tolerance);
        tolerance = (1 + tolerance) / 2;  // coarser steps until few are left
    } while (sizes.bytes.size() > most_sizes);
    for (auto bytes : chunk_bytes) {
        const auto after =
            std::upper_bound(sizes.bytes.begin(), sizes.bytes.end(), bytes, std::greater<>());
        const auto last_not_smaller = std::prev(after);
        sizes.of_chunk.push_back(static_cast<std::int32_t>(last_not_smaller - sizes.bytes.begin()));
    }
    return sizes;
}

std::vector<HopTimes> time_hops(const Network& network, const Hops& hops, CostModel cost,
                                const Sizes& sizes) {
    std::vector<HopTimes> times;
    for (auto bytes : sizes.bytes) times.push_back(time_hops(network, hops, cost, bytes));
    return times;
}

}  // namespace weft
