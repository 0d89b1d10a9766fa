// Routes demands by shortest ways, source after source; the memory is kept for the next.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flow.h"
#include "shortest.h"

namespace weft {

class Router {
  public:
    using Wide = unsigned __int128;

    Router(const Metric& metric, const Demands& demands)
        : metric_(metric), demands_(demands), passing_(metric.net.nodes()), shortest_(metric) {}

    // Adds what crosses each link to `loads`; gives the sum of amount times distance.
    Wide route(std::int32_t source, std::span<double> loads) {
        const auto begin = demands_.offsets[source], end = demands_.offsets[source + 1];
        if (begin == end) return 0;
        shortest_.search(source);
        std::fill(passing_.begin(), passing_.end(), 0.0);
        Wide total = 0;
        for (auto i = begin; i < end; ++i) {
            const auto distance = shortest_.distance(demands_.dst[i]);
            if (distance == Shortest::far) continue;
            total += static_cast<Wide>(demands_.amount[i]) * static_cast<Wide>(distance);
            passing_[demands_.dst[i]] += static_cast<double>(demands_.amount[i]);
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
    const Demands& demands_;
    std::vector<double> passing_;  // per node: how much ends there or passes
    std::vector<Metric::Arc> last_;
    Shortest shortest_;
};

}  // namespace weft
