// Forwarding: the fixed path of hops that a message between two NPUs takes, whatever else is on the
// way.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "hops.h"
#include "network.h"

namespace weft {

// The path has the fewest hops from NPU to NPU. Of next NPUs equally near the one whose first link
// has the lowest number is taken: on meshes, tori and products that is the first dimension first.
// Of several ways through switches to one NPU those towards different takers get one each in turn,
// as fat trees do; of parallel links alike, hops get one each in turn.
class Forwarding {
  public:
    static constexpr std::int32_t none = -1;

    // `largest` is the size of the largest message. `sets` are sets of NPUs, each ascending.
    Forwarding(const Network& network, CostModel cost, std::int64_t largest, const Rows& sets);

    // A table of next hops towards a taker through NPUs of the set `reach` (-1: any). It is made
    // when first asked for.
    std::int32_t towards(std::int32_t taker, std::int32_t reach);
    // The next hop from an NPU; none at the taker, and where there is no way.
    std::int32_t from(std::int32_t table, std::int32_t npu) const {
        return next_[static_cast<std::size_t>(table) * npus_ + static_cast<std::size_t>(npu)];
    }
    std::int32_t end_of(std::int32_t hop) const { return hops_.dst[hop]; }
    std::span<const std::int32_t> links_of(std::int32_t hop) const { return links_[hop]; }
    std::int32_t hops() const { return hops_.count(); }
    // Every hop is one link, with the link's number.
    bool single_links() const { return hops_.single_links; }

  private:
    void walk_back(std::int32_t taker, std::int32_t reach);
    void allow(std::int32_t reach);
    bool is_better(std::int32_t hop, std::int32_t than) const;
    void spread(std::int32_t taker, std::span<std::int32_t> next) const;

    std::size_t npus_;
    Hops hops_;
    Rows links_;  // of each hop
    const Rows& sets_;
    std::unordered_map<std::int64_t, std::int32_t> tables_;  // by taker and reach
    std::vector<std::int32_t> next_;                         // by table, then NPU
    std::vector<std::int32_t> distance_, queue_;
    std::vector<bool> may_hold_;
};

// Messages cut into hops: the hops of message m are `hop_offsets[m]` .. `hop_offsets[m + 1] - 1`.
struct Forwarded {
    std::vector<std::int64_t> hop_offsets{0};
    std::vector<std::int32_t> src{}, dst{}, route{};
    Rows routes{};           // the links of each route; if something stays at home the last has none
    std::int32_t lost = -1;  // the first message that has no path; then there are no hops
};

// A message from an NPU to itself is one hop, over the route without links.
Forwarded forward(const Network& network, CostModel cost, std::span<const std::int32_t> src,
                  std::span<const std::int32_t> dst, std::span<const std::int32_t> reach,
                  std::int64_t largest, const Rows& sets);

// Which of its holders each message comes from: the one with the fewest hops to go, the lowest of
// equals; -1 if none has a way.
std::vector<std::int32_t> nearest(const Network& network, CostModel cost,
                                  std::span<const std::int32_t> holders,
                                  std::span<const std::int32_t> taker,
                                  std::span<const std::int32_t> reach, std::int64_t largest,
                                  const Rows& sets);

}  // namespace weft
