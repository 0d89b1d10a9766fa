// Routes flows by shortest ways: by Dijkstra's algorithm with whole lengths, for many searches over
// the same links.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "bounds/flow.h"

namespace weft {

// The links out of and into each node with their lengths, side by side: kinder to caches.
struct Metric {
    struct Arc {
        std::int64_t length;
        std::int32_t node;  // at the other end
        std::int32_t link;
    };
    std::vector<Arc> out, in;
    const Network& net;

    Metric(const Network& network, std::span<const std::int64_t> lengths) : net(network) {
        for (auto link : net.out.items) out.push_back({lengths[link], net.dst[link], link});
        for (auto link : net.in.items) in.push_back({lengths[link], net.src[link], link});
    }
    std::span<const Arc> from(std::int32_t node) const { return row(out, net.out, node); }
    std::span<const Arc> into(std::int32_t node) const { return row(in, net.in, node); }

  private:
    static std::span<const Arc> row(const std::vector<Arc>& arcs, const Rows& rows,
                                    std::int32_t node) {
        return {arcs.data() + rows.offsets[node], arcs.data() + rows.offsets[node + 1]};
    }
};

// One search at a time from a node; the memory is kept for the next.
class Shortest {
  public:
    static constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();

    explicit Shortest(const Metric& metric)
        : metric_(metric), distance_(metric.net.nodes()), rank_(metric.net.nodes()) {}

    void search(std::int32_t source) {
        std::fill(distance_.begin(), distance_.end(), far);
        order_.clear();
        distance_[source] = 0;
        heap_.assign(1, {0, source});
        while (!heap_.empty()) {
            std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
            const auto [now, node] = heap_.back();
            heap_.pop_back();
            if (now > distance_[node]) continue;
            rank_[node] = static_cast<std::int32_t>(order_.size());
            order_.push_back(node);
            for (const auto& arc : metric_.from(node)) {
                if (now + arc.length >= distance_[arc.node]) continue;
                distance_[arc.node] = now + arc.length;
                heap_.emplace_back(distance_[arc.node], arc.node);
                std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
            }
        }
    }

    std::int64_t distance(std::int32_t node) const { return distance_[node]; }

    // The nodes that have a way, nearest first.
    std::span<const std::int32_t> order() const { return order_; }

    // Whether some shortest way ends in this arc into `node`. Of links of no length only those
    // that follow the order count, so that ways never run in circles.
    bool is_last(const Metric::Arc& arc, std::int32_t node) const {
        return distance_[arc.node] != far && distance_[arc.node] + arc.length == distance_[node] &&
               rank_[arc.node] < rank_[node];
    }

  private:
    const Metric& metric_;
    std::vector<std::int64_t> distance_;
    std::vector<std::int32_t> rank_, order_;
    std::vector<std::pair<std::int64_t, std::int32_t>> heap_;
};

// Source after source; the memory is kept for the next.
class FlowRouter {
  public:
    using Wide = unsigned __int128;

    FlowRouter(const Metric& metric, const Flows& flows)
        : metric_(metric), flows_(flows), passing_(metric.net.nodes()), shortest_(metric) {}

    // Adds what crosses each link to `loads`; gives the sum of amount times distance.
    Wide route(std::int32_t source, std::span<double> loads) {
        const auto begin = flows_.offsets[source], end = flows_.offsets[source + 1];
        if (begin == end) return 0;
        shortest_.search(source);
        std::fill(passing_.begin(), passing_.end(), 0.0);
        Wide total = 0;
        for (auto i = begin; i < end; ++i) {
            const auto distance = shortest_.distance(flows_.dst[i]);
            if (distance == Shortest::far) continue;
            total += static_cast<Wide>(flows_.amount[i]) * static_cast<Wide>(distance);
            passing_[flows_.dst[i]] += static_cast<double>(flows_.amount[i]);
        }
        load(loads);
        return total;
    }

  private:
    // From the farthest inwards: what ends at a node or passes it came by its last links.
    void load(std::span<double> loads) {
        const auto order = shortest_.order();
        for (std::size_t i = order.size(); i-- > 1;) {
            const auto node = order[i];
            if (passing_[node] == 0) continue;
            last_.clear();
            for (const auto& arc : metric_.into(node))
                if (shortest_.is_last(arc, node)) last_.push_back(arc);
            const double each = passing_[node] / static_cast<double>(last_.size());
            for (const auto& arc : last_) {
                loads[arc.link] += each;
                passing_[arc.node] += each;
            }
        }
    }

    const Metric& metric_;
    const Flows& flows_;
    std::vector<double> passing_;  // per node: how much ends there or passes
    std::vector<Metric::Arc> last_;
    Shortest shortest_;
};

}  // namespace weft
