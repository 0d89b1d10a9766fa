// Growth: as many trees from one root as a network has room for, all at once and shallow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "base/hops.h"
#include "base/random.h"
#include "planners/rooted/forest.h"
#include "planners/rooted/room.h"

namespace weft {

class ForestGrower {
  public:
    // `reach`: the NPUs that may be visited; any if it is empty.
    ForestGrower(const Network& network, const Hops& hops, const HopTimes& times, std::int32_t root,
                 std::span<const std::int32_t> members, std::span<const std::int32_t> reach,
                 std::uint64_t seed);

    // Until the last member has a chunk at the soonest; `never` if some has no way.
    ps nearest() const { return nearest_; }

    // No forest of so many trees is less deep.
    ps least_depth(int trees, ps slot) const;

    // The least time between chunks at which there is room for so many trees; `never` if at none.
    ps slot_of(int trees);

    // One at which there is room for any one tree.
    ps slot_of_all() const;

    // So many trees, grown side by side: the hop that arrives soonest joins its tree, if all trees
    // can be completed after that. In step, no two ever need a link at the same time. None if some
    // tree cannot be completed, as may be behind switches.
    std::optional<Forest> grow(int trees, ps slot, bool in_step);

    // For how many trees there is room on each bundle.
    std::vector<std::int32_t> capacities(ps slot) const;

    // Whether all hops take the same time.
    bool is_even() const {
        return std::ranges::all_of(times_.duration,
                                   [&](ps time) { return time == times_.duration.front(); });
    }
    std::int64_t hops() const { return hops_.count(); }
    // How much was looked at so far.
    std::int64_t work() const { return work_ + room_.work(); }

  private:
    // Hops out of one NPU over the same first link: as a group they make one offer to a tree.
    // What arrives soonest comes first; among equals what leads to an NPU that the fewest trees
    // have yet, so that trees branch in different places.
    struct Offer {
        ps arrival;
        int trees;
        std::uint32_t chance;
        int tree;
        std::int32_t group;
        std::int32_t hop = -1;
        auto operator<=>(const Offer&) const = default;
    };

    void find_groups();
    void find_nearest();
    void find_close();
    bool has_room_at_ends(int trees, ps slot) const;
    bool has_room(int trees, ps slot);

    ps& arrival(int tree, std::int32_t npu) { return arrival_[cell(tree, hops_.out, npu)]; }
    static std::size_t cell(int tree, const Rows& rows, std::int32_t row) {
        return static_cast<std::size_t>(tree) * rows.size() + row;
    }
    bool allows(int tree, std::int32_t hop);
    std::vector<std::int32_t> neediest(std::int32_t src, std::int32_t dst) const;
    void offer(int tree, std::int32_t npu);
    Offer best_of(const Offer& old);
    ps start_of(int tree, std::int32_t hop);
    ps start_in_step(ps soonest, std::int32_t hop) const;
    void join(Forest& forest, const Offer& offer);
    void take_links(Branch& branch);
    void prune(Forest& forest, int tree);

    const Hops& hops_;
    const HopTimes& times_;
    const std::int32_t root_;
    const std::span<const std::int32_t> members_;
    Random random_;
    Room room_;
    std::vector<bool> may_visit_, is_member_;
    std::vector<ps> held_;  // by bundle: how long a chunk holds a link; 0 where none may go
    Rows groups_;           // hops by group
    Rows groups_out_;       // groups by NPU
    Rows bundles_in_;       // by NPU: the last ones of hops to it
    Rows close_;            // NPUs that are soonest reached, by NPU
    ps nearest_ = never;
    std::int64_t work_ = 0;

    // Of the forest that grows.
    bool in_step_ = false;
    Rota rota_;
    std::vector<ps> arrival_;         // by tree and NPU
    std::vector<std::int32_t> sent_;  // by tree and group: hops that have joined
    std::vector<std::int32_t> turn_;  // by bundle: hops over it, which take its links in turn
    std::vector<bool> refused_;       // by tree and hop
    std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers_;
};

}  // namespace weft
