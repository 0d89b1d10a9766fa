// Forwarding: the fixed path of hops that a message between two NPUs takes, whatever else is on the
// way.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hops.h"
#include "base/tables.h"

namespace weft {

// The path has the fewest hops from NPU to NPU. Of next NPUs equally near the one whose first link
// has the lowest number is taken: on meshes, tori and products that is the first dimension first.
// Of several NPUs over that link the one that fewest paths lead to so far is taken. Of several ways
// through switches to one NPU those towards different takers behind a switch get one each in turn,
// as in fat trees, unless their links are crowded and others are not. Turns are taken by what is
// sent, not by what could be: most pairs of NPUs send nothing, and those that do are often as many
// numbers apart as there are ways.
//
// So: `settle` all paths, then `deal` the ways to them, then ask for hops and for the links of
// messages. Parallel links alike are divided among the NPUs whose messages cross them.
class Forwarding {
  public:
    static constexpr std::int32_t none = -1;

    // `largest` is the size of the largest message. `sets` are sets of NPUs, each ascending.
    Forwarding(const Network& network, CostModel cost, std::int64_t largest, RowsView sets);

    // A table of next hops towards a taker through NPUs of the set `reach` (-1: any). It is made
    // when first asked for.
    std::int32_t towards(std::int32_t taker, std::int32_t reach);
    // Chooses the next NPU after one, once; none at the taker, and where there is no way.
    std::int32_t settle(std::int32_t table, std::int32_t npu);
    // Settles the whole path from an NPU to the taker; whether there is one.
    bool settle_path(std::int32_t table, std::int32_t npu, std::int32_t taker);
    // Chooses among the ways to the NPUs that were settled.
    void deal();
    // The next hop from an NPU.
    std::int32_t from(std::int32_t table, std::int32_t npu) const {
        return next_[place(table, npu)];
    }
    std::int32_t end_of(std::int32_t hop) const { return hops_.dst[hop]; }
    // The links that the next message over a hop takes; valid until asked again.
    std::span<const std::int32_t> take(std::int32_t hop);
    // How many messages over a hop can take links of their own.
    std::int64_t ways(std::int32_t hop) const;
    // The links of a hop for the first message, to know how fast it is: those of others are alike.
    std::span<const std::int32_t> typical(std::int32_t hop) const { return first_links_[hop]; }
    std::int32_t hops() const { return hops_.count(); }
    // Every hop is one link, with the link's number.
    bool single_links() const { return hops_.single_links; }

  private:
    // An NPU among those whose messages cross a bundle near to it.
    struct User {
        std::int64_t rank, turn;
    };

    std::size_t place(std::int32_t table, std::int32_t npu) const {
        return static_cast<std::size_t>(table) * npus_ + static_cast<std::size_t>(npu);
    }
    void join_parallel_links(const Network& network);
    void walk_back(std::int32_t taker, std::int32_t reach);
    void allow(std::int32_t reach);
    bool is_better(std::int32_t hop, std::int32_t than) const;
    std::int32_t least_used(std::int32_t table, std::int32_t npu, std::int32_t chosen) const;
    std::vector<std::int32_t> ways_to(std::size_t place) const;
    std::int32_t least_crowded(std::size_t place) const;
    void use(std::int32_t hop);
    std::int64_t user_key(std::int32_t hop, std::size_t step) const;
    std::int64_t share(std::int32_t bundle, std::int64_t rank) const;

    std::size_t npus_;
    Hops hops_;
    Rows bundles_;              // those of `hops_`; parallel links between NPUs are one, too
    Rows first_links_;          // of each hop: the first link of each bundle
    std::vector<ps> duration_;  // of each hop, for the largest message
    RowsView sets_;
    std::unordered_map<std::int64_t, std::int32_t> tables_;  // by taker and reach
    std::vector<std::int32_t> next_;                         // by table, then NPU
    std::vector<std::int32_t> left_;      // hops to go, likewise; only where there are switches
    std::vector<bool> settled_;           // likewise
    std::vector<std::int32_t> entry_;     // by hop: the node before its end
    std::vector<std::int64_t> paths_to_;  // by NPU: paths whose next hop leads there
    std::vector<std::size_t> undealt_;    // places that are settled, until ways are dealt
    std::vector<std::int32_t> taker_;     // by table
    std::map<std::int32_t, std::vector<std::int32_t>>
        takers_;                                   // by entry: of paths with several ways
    std::vector<std::int64_t> paths_;              // by bundle: paths that cross it
    std::vector<std::int64_t> users_;              // by bundle: NPUs that share it
    std::unordered_map<std::int64_t, User> user_;  // by bundle and NPU
    std::vector<std::int32_t> distance_, queue_, taken_;
    std::vector<bool> may_hold_;
};

// Messages cut into hops: the hops of message m are `hop_offsets[m]` .. `hop_offsets[m + 1] - 1`.
struct Forwarded {
    std::vector<std::int64_t> hop_offsets{0};
    std::vector<std::int32_t> src{}, dst{}, route{};
    Rows routes{};  // the links of each route; if something stays at home the last has none
    std::int32_t lost = -1;  // the first message that has no path; then there are no hops
};

// `reach` is of each message, and names a set of `chunks`, of which none is larger than the
// largest. A message from an NPU to itself is one hop, over the route without links.
Forwarded forward(const Network& network, CostModel cost, std::span<const std::int32_t> src,
                  std::span<const std::int32_t> dst, std::span<const std::int32_t> reach,
                  const Chunks& chunks);

// Which holder of its chunk each message comes from: the one with the fewest hops to go, the lowest
// of equals; -1 if none has a way.
std::vector<std::int32_t> nearest(const Network& network, CostModel cost, const Chunks& chunks,
                                  std::span<const std::int64_t> chunk,
                                  std::span<const std::int32_t> taker);

}  // namespace weft
