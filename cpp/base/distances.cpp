#include "base/distances.h"

#include <algorithm>

namespace weft {

namespace {

// Breadth-first search that can be run again without clearing: a node counts as seen when it
// carries the number of the current run.
class Search {
  public:
    explicit Search(const Network& network)
        : seen_(network.nodes(), 0), target_(network.nodes(), 0) {
        queue_.reserve(network.nodes());
        neighbours_.offsets = network.out.offsets;
        neighbours_.items.reserve(network.links());
        for (auto link : network.out.items) neighbours_.items.push_back(network.dst[link]);
    }

    void aim(std::span<const std::int32_t> targets) {
        for (auto node : targets) target_[node] = 1;
        targets_ = static_cast<std::int64_t>(targets.size());
    }

    // Links to the last target found; stops there, so dense networks cost little.
    std::int32_t run(std::int32_t source, std::int64_t& looked_at) {
        ++run_;
        queue_.assign(1, source);
        seen_[source] = run_;
        std::int64_t missing = targets_ - target_[source];
        std::int32_t depth = 0;
        for (std::size_t head = 0, level_end = 1; head < queue_.size() && missing > 0; ++head) {
            if (head == level_end) {
                ++depth;
                level_end = queue_.size();
            }
            const auto around = neighbours_[queue_[head]];
            looked_at += static_cast<std::int64_t>(around.size());
            for (auto next : around) {
                if (seen_[next] == run_) continue;
                seen_[next] = run_;
                missing -= target_[next];
                queue_.push_back(next);
            }
        }
        return targets_ > target_[source] ? depth + 1 : 0;
    }

  private:
    Rows neighbours_;  // nodes one link away, so that a search does not go through link numbers
    std::vector<std::int32_t> seen_;
    std::vector<std::uint8_t> target_;
    std::vector<std::int32_t> queue_;
    std::int64_t targets_ = 0;
    std::int32_t run_ = 0;
};

}  // namespace

std::vector<std::int32_t> distances(const Network& network, std::int32_t source, bool reverse) {
    const auto& rows = reverse ? network.in : network.out;
    const auto& end = reverse ? network.src : network.dst;
    std::vector<std::int32_t> distance(network.nodes(), -1);
    std::vector<std::int32_t> queue{source};
    distance[source] = 0;
    for (std::size_t head = 0; head < queue.size(); ++head) {
        const auto node = queue[head];
        for (auto link : rows[node]) {
            const auto next = end[link];
            if (distance[next] >= 0) continue;
            distance[next] = distance[node] + 1;
            queue.push_back(next);
        }
    }
    return distance;
}

Reach longest_path(const Network& network, std::span<const std::int32_t> sources,
                   std::span<const std::int32_t> targets, std::int64_t budget) {
    Search search(network);
    search.aim(targets);
    Reach reach;
    std::int64_t looked_at = 0;
    for (auto source : sources) {
        if (reach.sources > 0 && looked_at >= budget) break;
        reach.farthest = std::max(reach.farthest, search.run(source, looked_at));
        ++reach.sources;
    }
    return reach;
}

}  // namespace weft
