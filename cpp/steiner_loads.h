// How full links are, and what it costs to load them further.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "hops.h"

namespace weft {

class Loads {
  public:
    Loads(const Hops& hops, std::span<const HopTimes> times)
        : hops_(hops), times_(times), load_(hops.bundles.size(), 0), even_(hops.bundles.size()) {}

    // Links loaded with `time` count as full.
    void aim_at(double time) {
        for (std::int32_t b = 0; b < hops_.bundles.size(); ++b)
            even_[b] = 1 / (time * static_cast<double>(hops_.bundles[b].size()));
    }

    // What it costs to send `chunks` of a size over a hop: the time its links are held, steeply
    // more as they get full, and something for the time that passes.
    double price(std::int32_t hop, std::int32_t size, double chunks) const {
        const auto& times = times_[size];
        double sum = depth_price * static_cast<double>(times.duration[hop]);
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i) {
            const auto bundle = hops_.steps.items[i];
            const auto held = static_cast<double>(times.holds[i].length);
            const double full = (load_[bundle] + chunks * held) * even_[bundle];
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

    // The time for which the busiest link is held.
    double busiest() const {
        double most = 0;
        for (std::int32_t b = 0; b < hops_.bundles.size(); ++b)
            most = std::max(most, load_[b] / static_cast<double>(hops_.bundles[b].size()));
        return most;
    }

    static constexpr double depth_price = 0.1;   // of each unit of time from the root
    static constexpr double floor_price = 0.01;  // of an idle link, so that trees do not wander

  private:
    const Hops& hops_;
    std::span<const HopTimes> times_;
    std::vector<double> load_;  // per bundle: time its links are held in all
    std::vector<double> even_;  // per bundle: one over the load that counts as full
};

}  // namespace weft
