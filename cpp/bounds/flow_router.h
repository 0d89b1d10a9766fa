// Routes flows by shortest ways, source after source; the memory is kept for the next.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bounds/flow.h"
#include "bounds/shortest_paths.h"

namespace weft {

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
