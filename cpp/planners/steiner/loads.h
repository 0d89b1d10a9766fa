// How full links are with trees of many chunks, and what it costs to load them further. Paths of
// single chunks have `Congestion`, whose costs rise more steeply and count no idle time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hops.h"

namespace weft {

class Loads {
  public:
    // `depth_price`: of each unit of time from the root, where one of a full link costs one.
    Loads(const Hops& hops, std::span<const HopTimes> times, double depth_price)
        : hops_(hops), times_(times), depth_price_(depth_price), load_(hops.bundles.size(), 0),
          idle_(hops.bundles.size(), 0), even_(hops.bundles.size()) {}

    // Links busy for `time` count as full.
    void aim_at(double time) {
        for (std::int32_t b = 0; b < hops_.bundles.size(); ++b) even_[b] = 1 / (time * links(b));
    }
    // For how long each bundle must idle, before what it carries can reach it and after.
    void set_idle(const std::vector<double>& time) {
        for (std::int32_t b = 0; b < hops_.bundles.size(); ++b) idle_[b] = time[b] * links(b);
    }

    // What it costs to send `chunks` of a size over a hop: the time its links are held, steeply
    // more as they get full, and something for the time that passes.
    double price(std::int32_t hop, std::int32_t size, double chunks) const {
        const auto& times = times_[size];
        double sum = depth_price_ * static_cast<double>(times.duration[hop]);
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i) {
            const auto bundle = hops_.steps.items[i];
            const auto held = static_cast<double>(times.holds[i].length);
            const double full = (load_[bundle] + idle_[bundle] + chunks * held) * even_[bundle];
            const double cube = full * full * full;
            sum += held * (floor_price + cube * cube);
        }
        return sum;
    }

    void put(std::int32_t hop, std::int32_t size, double chunks) {
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i)
            load_[hops_.steps.items[i]] +=
                chunks * static_cast<double>(times_[size].holds[i].length);
    }

    // The time until which a bundle is busy at least.
    double busy(std::int32_t bundle) const {
        return (load_[bundle] + idle_[bundle]) / links(bundle);
    }
    double busiest() const {
        double most = 0;
        for (std::int32_t b = 0; b < hops_.bundles.size(); ++b) most = std::max(most, busy(b));
        return most;
    }
    double depth_price() const { return depth_price_; }

  private:
    static constexpr double floor_price = 0.01;  // of an idle link, so that trees do not wander

    double links(std::int32_t bundle) const {
        return static_cast<double>(hops_.bundles[bundle].size());
    }

    const Hops& hops_;
    std::span<const HopTimes> times_;
    const double depth_price_;
    std::vector<double> load_;  // per bundle: time its links are held in all
    std::vector<double> idle_;  // per bundle: time its links must idle in all
    std::vector<double> even_;  // per bundle: one over the load that counts as full
};

}  // namespace weft
