// What a hop costs on a route, for chunks of any size.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/network.h"

namespace weft {

struct RouteTimes {
    ps duration = -1;
    std::vector<Hold> holds;
};

// What a hop costs on a route for a size of chunk, worked out when first asked. Where hardly two
// chunks are of one size not all can be kept.
class TimesBySize {
  public:
    TimesBySize(const Network& net, RowsView routes, CostModel cost)
        : net_(net), routes_(routes), cost_(cost) {}

    const RouteTimes& of(std::int64_t bytes, std::int32_t route) {
        auto found = by_size_.find(bytes);
        if (found == by_size_.end()) {
            if (by_size_.size() == most_sizes) return work_out(bytes, route, passing_);
            found = by_size_.try_emplace(bytes, routes_.size()).first;
        }
        auto& times = found->second[route];
        return times.duration < 0 ? work_out(bytes, route, times) : times;
    }

  private:
    const RouteTimes& work_out(std::int64_t bytes, std::int32_t route, RouteTimes& times) {
        speeds_.clear();
        for (auto link : routes_[route]) speeds_.push_back(net_.speed[link]);
        times.holds.resize(speeds_.size());
        times.duration = hop(cost_, bytes, speeds_, times.holds);
        return times;
    }

    static constexpr std::size_t most_sizes = 64;

    const Network& net_;
    RowsView routes_;
    CostModel cost_;
    std::unordered_map<std::int64_t, std::vector<RouteTimes>> by_size_;
    RouteTimes passing_;
    std::vector<Speed> speeds_;
};

}  // namespace weft
