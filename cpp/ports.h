// Who may use a link when. Two kinds, one interface for the matching: hops that are single links,
// and hops that hold several links on their way through switches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hops.h"

namespace weft {

// A network without switches: a hop is a link, with the link's number.
class LinkPorts {
  public:
    LinkPorts(const Hops& hops, const HopTimes& times)
        : times_(times), free_at_(hops.count(), 0) {}

    bool take(std::int32_t hop, ps now) { return take(hop, now, times_); }
    // The same for a chunk of another size, with its own times.
    bool take(std::int32_t hop, ps now, const HopTimes& times) {
        if (free_at_[hop] > now) return false;
        free_at_[hop] = now + times.holds[hop].length;
        return true;
    }
    bool is_free(std::int32_t hop, ps now, const HopTimes&) const { return free_at_[hop] <= now; }
    // The first step of a hop that is taken when it would be needed; -1 if the hop can start.
    std::int64_t blocked_at(std::int32_t hop, ps now) const {
        return free_at_[hop] <= now ? -1 : hop;
    }
    ps free_at(std::int32_t bundle) const { return free_at_[bundle]; }
    std::int32_t route(std::int32_t hop) const { return hop; }
    Rows take_routes() { return {}; }

  private:
    const HopTimes& times_;
    std::vector<ps> free_at_;
};

// A network with switches: a hop holds one link of each bundle on its way, at its own offset.
class RoutedPorts {
  public:
    RoutedPorts(const Hops& hops, const HopTimes& times)
        : hops_(hops), times_(times), free_at_(hops.bundles.items.size(), 0) {}

    // Takes a free link of every bundle of the hop, or none.
    bool take(std::int32_t hop, ps now) { return take(hop, now, times_); }
    // The same for a chunk of another size, with its own times.
    bool take(std::int32_t hop, ps now, const HopTimes& times) {
        if (!is_free(hop, now, times)) return false;
        std::uint64_t choice = 0;
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i) {
            const auto bundle = hops_.steps.items[i];
            const auto first = hops_.bundles.offsets[bundle];
            const auto last = hops_.bundles.offsets[bundle + 1];
            const auto slot = free_slot(bundle, now + times.holds[i].offset);
            free_at_[slot] = now + times.holds[i].offset + times.holds[i].length;
            choice = choice * static_cast<std::uint64_t>(last - first) +
                     static_cast<std::uint64_t>(slot - first);
            links_.push_back(hops_.bundles.items[slot]);
        }
        remember_route(hop, choice);
        return true;
    }
    bool is_free(std::int32_t hop, ps now, const HopTimes& times) const {
        return blocked_at(hop, now, times) < 0;
    }
    std::int64_t blocked_at(std::int32_t hop, ps now) const { return blocked_at(hop, now, times_); }
    ps free_at(std::int32_t bundle) const {
        return *std::min_element(free_at_.begin() + hops_.bundles.offsets[bundle],
                                 free_at_.begin() + hops_.bundles.offsets[bundle + 1]);
    }
    // The route of the hop taken last.
    std::int32_t route(std::int32_t) const { return last_route_; }
    Rows take_routes() { return std::move(routes_); }

  private:
    std::int64_t blocked_at(std::int32_t hop, ps now, const HopTimes& times) const {
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i)
            if (free_slot(hops_.steps.items[i], now + times.holds[i].offset) < 0) return i;
        return -1;
    }
    std::int64_t free_slot(std::int32_t bundle, ps time) const {
        for (auto s = hops_.bundles.offsets[bundle]; s < hops_.bundles.offsets[bundle + 1]; ++s)
            if (free_at_[s] <= time) return s;
        return -1;
    }
    void remember_route(std::int32_t hop, std::uint64_t choice) {
        const auto key = static_cast<std::uint64_t>(hop) << 32 ^ choice;
        auto [found, is_new] = numbers_.try_emplace(key, routes_.size());
        if (is_new) {
            routes_.items.insert(routes_.items.end(), links_.begin(), links_.end());
            routes_.close();
        }
        links_.clear();
        last_route_ = found->second;
    }

    const Hops& hops_;
    const HopTimes& times_;
    std::vector<ps> free_at_;  // parallel to Hops::bundles.items
    std::unordered_map<std::uint64_t, std::int32_t> numbers_;
    Rows routes_;
    std::vector<std::int32_t> links_;
    std::int32_t last_route_ = -1;
};

}  // namespace weft
