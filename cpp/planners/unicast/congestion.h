// How long the links are held by all chunks together, and what a hop costs in view of that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/hops.h"

namespace weft {

// Loads are in time, so that links of different speeds compare. A hop costs `thrift` times the time
// it takes, and for each link the time it holds it, more steeply the nearer the link's load is to
// the target: the load above which a link would be the one that everybody waits for.
class Congestion {
  public:
    Congestion(const Hops& hops, const std::vector<HopTimes>& times, double thrift)
        : hops_(hops), steps_(static_cast<std::int64_t>(hops.steps.items.size())),
          load_(hops.bundles.size(), 0), is_simple_(hops.single_links && times.size() == 1),
          cost_(is_simple_ ? hops.count() : 0) {
        own_.reserve(times.size() * steps_);
        base_.reserve(times.size() * hops.count());
        for (const auto& kind : times) {
            for (auto duration : kind.duration)
                base_.push_back(thrift * static_cast<double>(duration));
            for (std::int64_t i = 0; i < steps_; ++i) {
                const auto links = hops.bundles[hops.steps.items[i]].size();
                own_.push_back(static_cast<double>(kind.holds[i].length) /
                               static_cast<double>(links));
            }
        }
    }

    // `doublings`: the cost grows with the load to the power of two to this number.
    void aim(double target, int doublings) {
        per_target_ = 1 / target;
        doublings_ = doublings;
        if (is_simple_)
            for (std::int32_t hop = 0; hop < hops_.count(); ++hop) cost_[hop] = work_out(hop, 0);
    }

    // What it costs to add a chunk of a size to a hop.
    double cost(std::int32_t hop, std::int32_t size) const {
        return is_simple_ ? cost_[hop] : work_out(hop, size);
    }
    double cost(std::span<const std::int32_t> path, std::int32_t size) const {
        double sum = 0;
        for (auto hop : path) sum += cost(hop, size);
        return sum;
    }

    void add(std::span<const std::int32_t> path, std::int32_t size) { put(path, size, 1); }
    void remove(std::span<const std::int32_t> path, std::int32_t size) { put(path, size, -1); }

    // What a hop adds to the mean of all loads, roughly.
    double mean_share() const {
        const double sum = std::accumulate(own_.begin(), own_.end(), 0.0);
        return own_.empty() ? 0 : sum / static_cast<double>(own_.size() * load_.size());
    }
    double largest() const {
        return load_.empty() ? 0 : *std::max_element(load_.begin(), load_.end());
    }

  private:
    double work_out(std::int32_t hop, std::int32_t size) const {
        const double* own = own_.data() + size * steps_;
        double sum = base_[static_cast<std::int64_t>(size) * hops_.count() + hop];
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i)
            sum += own[i] * steepness(load_[hops_.steps.items[i]] + own[i]);
        return sum;
    }
    double steepness(double load) const {
        double power = load * per_target_;
        for (int i = 0; i < doublings_; ++i) power *= power;
        return power;
    }
    void put(std::span<const std::int32_t> path, std::int32_t size, double sign) {
        const double* own = own_.data() + size * steps_;
        for (auto hop : path)
            for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i)
                load_[hops_.steps.items[i]] += sign * own[i];
        if (is_simple_)
            for (auto hop : path) cost_[hop] = work_out(hop, 0);
    }

    const Hops& hops_;
    std::int64_t steps_;
    std::vector<double> load_;        // per bundle: mean over its links
    std::vector<double> own_, base_;  // per size: by step, by hop
    bool is_simple_;                  // one size, and no two hops share a link: costs are kept
    std::vector<double> cost_;        // per hop, if so
    double per_target_ = 1;
    int doublings_ = 3;
};

}  // namespace weft
