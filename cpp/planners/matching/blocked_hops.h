// Where hops wait that a busy link blocks: each at one bundle, the first found busy, so that a
// release wakes few in vain. First come, first woken.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace weft {

class Waits {
  public:
    Waits(std::int32_t bundles, std::int32_t hops)
        : first_(bundles, nobody), last_(bundles, nobody), next_(hops, nobody) {}

    void wait(std::int32_t hop, std::int32_t bundle) {
        (first_[bundle] == nobody ? first_[bundle] : next_[last_[bundle]]) = hop;
        last_[bundle] = hop;
        next_[hop] = nobody;
    }

    // Empties the list of a bundle; hands out who waited there.
    template <class Handle>
    void leave(std::int32_t bundle, Handle handle) {
        for (auto hop = std::exchange(first_[bundle], nobody); hop != nobody;) {
            const auto next = next_[hop];
            handle(hop);
            hop = next;
        }
    }

  private:
    static constexpr std::int32_t nobody = -1;
    std::vector<std::int32_t> first_, last_;  // by bundle
    std::vector<std::int32_t> next_;          // by hop
};

}  // namespace weft
