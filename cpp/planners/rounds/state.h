// What the round engine knows while it runs: who has which chunk, and what each link carries.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/block_sets.h"
#include "base/network.h"

namespace weft {

inline constexpr std::uint32_t no_chunk = ~std::uint32_t{0};
inline constexpr std::uint32_t no_round = ~std::uint32_t{0} - 1;  // and none follows it

// Links lie in order of their destination here, under numbers called slots; those into one NPU
// from the quickest to the slowest. Chunks have labels, drawn at random, in the place of numbers:
// what is near in the buffer is far apart in the sets, so that no block is sought after by all.
//
// A round has two phases. In the first nothing changes but the picks of the round and the marks of
// a slot, which belong to its destination: destinations can be planned in any order, by any
// thread. In the second the picks take effect (`commit`), again destination by destination.
class RoundState {
  public:
    RoundState(const Network& network, std::span<const std::int32_t> period,
               std::span<const std::int32_t> lag, std::span<const std::int32_t> owner,
               std::uint64_t seed);

    std::int32_t npus;
    std::uint32_t chunks, blocks, summary_words;
    std::int32_t longest_lag = 1, longest_period = 1;
    std::int64_t deliveries = 0;  // to be made in all

    // By slot.
    std::vector<std::int64_t> first;  // of each NPU, and the end
    std::vector<std::int32_t> link, src, period, lag;
    std::vector<std::int32_t> spare;  // what the quicker links could bring before this one does
    std::vector<std::uint32_t> free_from;  // the round from which the link is free
    std::vector<std::uint32_t> dry_in;     // the last round when nothing was left for it to send
    std::vector<std::uint8_t> alike;       // by NPU: whether its slots are equally quick

    Rows onward;                           // the NPUs next after each
    std::vector<std::uint32_t> lacks;      // by NPU: how many chunks are not claimed yet
    std::vector<std::uint32_t> number_of;  // the chunk of each label

    // Claimed: had, or on the way. Where every chunk can be sent on in the next round, this is
    // what an NPU has.
    BlockSets claimed;
    const BlockSets& have() const { return later_ ? *later_ : claimed; }

    // By NPU, a bit a block: whether it has some of its chunks, whether all are claimed.
    const std::uint64_t* some(std::int32_t npu) const { return summary(some_, npu); }
    const std::uint64_t* full(std::int32_t npu) const { return summary(full_, npu); }

    // What the slots carry from a round on, by label. Only the last `longest_lag` rounds are kept.
    std::uint32_t* picks(std::uint32_t round) {
        return picks_.data() + round % (longest_lag + 1) * link.size();
    }
    const std::uint32_t* picks(std::uint32_t round) const {
        return const_cast<RoundState*>(this)->picks(round);
    }
    // What arrived through a slot just before a round.
    std::uint32_t arrived(std::int64_t slot, std::uint32_t round) const {
        const auto away = static_cast<std::uint32_t>(lag[slot]);
        return round < away ? no_chunk : picks(round - away)[slot];
    }

    void commit(std::int32_t npu, std::uint32_t round);

  private:
    void order_slots(const Network& network, std::span<const std::int32_t> link_period,
                     std::span<const std::int32_t> link_lag);
    void hand_out(std::span<const std::int32_t> owner, std::uint64_t seed);
    void receive(std::int32_t npu, std::uint32_t label);

    const std::uint64_t* summary(const std::vector<std::uint64_t>& bits, std::int32_t npu) const {
        return bits.data() + static_cast<std::size_t>(npu) * summary_words;
    }
    void mark(std::vector<std::uint64_t>& bits, std::int32_t npu, std::uint32_t block) const {
        bits[static_cast<std::size_t>(npu) * summary_words + block / 64] |= std::uint64_t{1}
                                                                            << (block % 64);
    }

    std::optional<BlockSets> later_;  // what an NPU has, where that is not what it claimed
    std::vector<std::uint64_t> some_, full_;
    std::vector<std::uint32_t> picks_;
};

// Chooses what the slots into NPUs [begin, end) carry from `round` on, and counts it by the range
// of links it belongs to.
void plan_round(RoundState& state, std::int32_t begin, std::int32_t end, std::uint32_t round,
                std::uint64_t seed, std::span<const std::uint16_t> range_of,
                std::span<std::int64_t> counts);

}  // namespace weft
