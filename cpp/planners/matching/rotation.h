// Whose turn it is at a port: destinations in order of (dst - src), one further each time. With
// every source doing so, a switch sees one permutation after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/hops.h"

namespace weft {

class Rotation {
  public:
    explicit Rotation(const Hops& hops)
        : hops_(hops), place_(hops.count()), size_(hops.bundles.size()),
          sent_(hops.bundles.size(), 0) {
        std::vector<std::int32_t> first(hops.count());
        for (std::int32_t h = 0; h < hops.count(); ++h) first[h] = port(h);
        const Rows by_port = group_by(first, hops.bundles.size());
        const auto npus = hops.out.size();
        auto shift = [&](std::int32_t h) { return (hops.dst[h] - hops.src[h] + npus) % npus; };
        for (std::int32_t p = 0; p < by_port.size(); ++p) {
            std::vector<std::int32_t> list(by_port[p].begin(), by_port[p].end());
            std::stable_sort(list.begin(), list.end(),
                             [&](auto a, auto b) { return shift(a) < shift(b); });
            for (std::size_t i = 0; i < list.size(); ++i)
                place_[list[i]] = static_cast<std::uint32_t>(i);
            size_[p] = static_cast<std::uint32_t>(list.size());
        }
    }

    // How many of its port's hops have their turn before this one.
    std::uint32_t turn(std::int32_t hop) const {
        const auto size = size_[port(hop)];
        return (place_[hop] + size - sent_[port(hop)] % size) % size;
    }
    void note_sent(std::int32_t hop) { ++sent_[port(hop)]; }

  private:
    std::int32_t port(std::int32_t hop) const { return hops_.steps[hop][0]; }

    const Hops& hops_;
    std::vector<std::uint32_t> place_;        // by hop: among those of its port
    std::vector<std::uint32_t> size_, sent_;  // by port
};

}  // namespace weft
