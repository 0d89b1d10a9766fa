// Who may use a link when. Two kinds, one interface for the matching: hops that are single links,
// and hops that hold several links on their way through switches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/hops.h"

namespace weft {

// A network without switches: a hop is a link, with the link's number.
class LinkPorts {
  public:
    explicit LinkPorts(const Hops& hops) : free_at_(hops.count(), 0) {}

    bool take(std::int32_t hop, ps now, const HopTimes& times) {
        if (free_at_[hop] > now) return false;
        free_at_[hop] = now + times.holds[hop].length;
        return true;
    }
    std::int64_t join(std::int32_t, ps, const HopTimes&) { return 0; }
    // The first step of a hop that is taken when it would be needed; -1 if the hop can start.
    std::int64_t blocked_at(std::int32_t hop, ps now, const HopTimes&) const {
        return free_at_[hop] <= now ? -1 : hop;
    }
    ps free_at(std::int32_t bundle) const { return free_at_[bundle]; }
    std::int32_t route() const { return -1; }  // none but the hop itself
    Rows take_routes() { return {}; }

  private:
    std::vector<ps> free_at_;
};

// A network with switches: a hop holds one link of each bundle on its way, at its own offset.
class RoutedPorts {
  public:
    explicit RoutedPorts(const Hops& hops)
        : hops_(hops), free_at_(hops.bundles.items.size(), 0),
          sent_(hops.multicast ? hops.bundles.size() : 0) {}

    // Takes a free link of every bundle of the hop, or none.
    bool take(std::int32_t hop, ps now, const HopTimes& times) {
        if (blocked_at(hop, now, times) >= 0) return false;
        ++transmission_;
        take_links(hop, now, times, 0);
        return true;
    }
    // Multicast: lets the hop be part of what was sent last, if it can part from that at a switch
    // that copies and the links from there on are free. Returns how many of its steps it shares;
    // none if it cannot, and then takes nothing.
    std::int64_t join(std::int32_t hop, ps now, const HopTimes& times) {
        const auto shared = shared_steps(hop, times);
        if (shared == 0 || shared == static_cast<std::int64_t>(hops_.steps[hop].size())) return 0;
        if (!hops_.copied[hops_.steps[hop][shared - 1]]) return 0;
        if (blocked_at(hop, now, times, shared) >= 0) return 0;
        take_links(hop, now, times, shared);
        return shared;
    }
    std::int64_t blocked_at(std::int32_t hop, ps now, const HopTimes& times,
                            std::int64_t from_step = 0) const {
        for (auto i = hops_.steps.offsets[hop] + from_step; i < hops_.steps.offsets[hop + 1]; ++i)
            if (free_slot(hops_.steps.items[i], now + times.holds[i].offset) < 0) return i;
        return -1;
    }
    ps free_at(std::int32_t bundle) const {
        return *std::min_element(free_at_.begin() + hops_.bundles.offsets[bundle],
                                 free_at_.begin() + hops_.bundles.offsets[bundle + 1]);
    }
    // The route of the hop taken last.
    std::int32_t route() const { return last_route_; }
    Rows take_routes() { return std::move(routes_); }

  private:
    // What was sent over a bundle last: as part of which transmission, coming from which bundle,
    // over which of its links and when.
    struct Sent {
        std::uint64_t transmission = 0;
        std::int32_t before = -1;
        std::int64_t slot = -1;
        Hold hold{};
    };

    // How many steps from the start the hop has in common with what was sent last.
    std::int64_t shared_steps(std::int32_t hop, const HopTimes& times) const {
        const auto begin = hops_.steps.offsets[hop], end = hops_.steps.offsets[hop + 1];
        auto i = begin;
        for (std::int32_t before = -1; i < end; before = hops_.steps.items[i++]) {
            const auto& sent = sent_[hops_.steps.items[i]];
            if (sent.transmission != transmission_ || sent.before != before ||
                sent.hold != times.holds[i])
                break;
        }
        return i - begin;
    }

    // A free link of every bundle; the first `shared` steps take the links of what was sent last.
    void take_links(std::int32_t hop, ps now, const HopTimes& times, std::int64_t shared) {
        const auto begin = hops_.steps.offsets[hop];
        std::uint64_t choice = 0;
        for (auto i = begin; i < hops_.steps.offsets[hop + 1]; ++i) {
            const auto bundle = hops_.steps.items[i];
            const auto first = hops_.bundles.offsets[bundle];
            const auto last = hops_.bundles.offsets[bundle + 1];
            const Hold hold = times.holds[i];
            const bool is_new = i >= begin + shared;
            const auto slot = is_new ? free_slot(bundle, now + hold.offset) : sent_[bundle].slot;
            free_at_[slot] = now + hold.offset + hold.length;
            if (hops_.multicast && is_new)
                sent_[bundle] = {transmission_, i > begin ? hops_.steps.items[i - 1] : -1, slot,
                                 hold};
            choice = choice * static_cast<std::uint64_t>(last - first) +
                     static_cast<std::uint64_t>(slot - first);
            links_.push_back(hops_.bundles.items[slot]);
        }
        remember_route(hop, choice);
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
    std::vector<ps> free_at_;  // parallel to Hops::bundles.items
    std::vector<Sent> sent_;   // by bundle; only with multicast
    std::uint64_t transmission_ = 0;
    std::unordered_map<std::uint64_t, std::int32_t> numbers_;
    Rows routes_;
    std::vector<std::int32_t> links_;
    std::int32_t last_route_ = -1;
};

}  // namespace weft
