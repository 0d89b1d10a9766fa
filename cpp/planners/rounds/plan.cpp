// The first phase of a round: which chunk each link takes.
#include <bit>
#include <cstring>

#include "base/random.h"
#include "base/vectors.h"
#include "planners/rounds/state.h"

namespace weft {
namespace {

constexpr int most_onward = 15;  // NPUs beyond the receiver that are asked what they lack
constexpr int counter_bits = 4;
constexpr int most_ranked = 2;  // blocks in which no chunk is lacked by all of them

typedef Block BlockInSet __attribute__((aligned(64), may_alias));

WEFT_INLINE const BlockInSet& block_of(const BlockSets& sets, std::uint32_t block,
                                       std::int32_t npu) {
    return *reinterpret_cast<const BlockInSet*>(sets.block(block, npu));
}

// One of the bits that are set, from a random place on.
WEFT_INLINE std::uint32_t one_of(const Block& bits, std::uint64_t random) {
    std::uint64_t words[words_per_block];
    std::memcpy(words, &bits, sizeof words);
    auto word = static_cast<std::uint32_t>(random >> 6) % words_per_block;
    while (!words[word]) word = (word + 1) % words_per_block;
    const auto turn = static_cast<int>(random % 64);
    const auto bit = (std::countr_zero(std::rotr(words[word], turn)) + turn) % 64;
    return word * 64 + static_cast<std::uint32_t>(bit);
}

// Who receives, and what is settled of its round.
struct Receiver {
    std::int32_t npu;
    std::uint32_t round, first_block;
    std::int32_t onward_count, chosen_count;
    std::int32_t onward[most_onward];
    std::uint32_t* chosen;  // labels
    // Those in the first block, where most are; and how many lie elsewhere.
    alignas(64) std::uint64_t in_first[words_per_block];
    std::int32_t elsewhere;

    bool has_chosen(std::uint32_t label) const {
        for (std::int32_t i = 0; i < chosen_count; ++i)
            if (chosen[i] == label) return true;
        return false;
    }
    void choose(std::uint32_t label) {
        chosen[chosen_count++] = label;
        if (label / chunks_per_block == first_block)
            in_first[label / 64 % words_per_block] |= std::uint64_t{1} << (label % 64);
        else
            ++elsewhere;
    }
};

// What `source` has and the receiver will not get otherwise.
WEFT_INLINE void candidates(const RoundState& state, const Receiver& to, std::int32_t source,
                            std::uint32_t block, Block& bits) {
    bits = block_of(state.have(), block, source) & ~block_of(state.claimed, block, to.npu);
    if (block == to.first_block) {
        bits &= ~*reinterpret_cast<const BlockInSet*>(to.in_first);
    } else if (to.elsewhere) {
        alignas(64) std::uint64_t chosen[words_per_block] = {};
        for (std::int32_t i = 0; i < to.chosen_count; ++i)
            if (to.chosen[i] / chunks_per_block == block)
                chosen[to.chosen[i] / 64 % words_per_block] |= std::uint64_t{1}
                                                               << (to.chosen[i] % 64);
        bits &= ~*reinterpret_cast<const BlockInSet*>(chosen);
    }
}

// Of `bits` those that the most of the onward NPUs lack, and by how many.
WEFT_INLINE int most_wanted(const RoundState& state, const Receiver& to, std::uint32_t block,
                            Block& bits) {
    Block counter[counter_bits] = {};
    for (std::int32_t i = 0; i < to.onward_count; ++i)
        add_set(counter, counter_bits, ~block_of(state.claimed, block, to.onward[i]));
    return keep_largest(counter, counter_bits, bits);
}

// Looks at the blocks in a circle, from the one with which all begin this round, and stops at
// chunks that all onward NPUs lack, or when it has seen enough others.
WEFT_INLINE std::uint32_t search(const RoundState& state, const Receiver& to, std::int32_t source,
                                 std::uint64_t random) {
    const auto* some = state.some(source);
    const auto* full = state.full(to.npu);
    const auto words = state.summary_words;
    const auto first_word = to.first_block / 64;
    const auto from_first = ~std::uint64_t{0} << (to.first_block % 64);
    int best = -1, ranked = 0;
    std::uint32_t best_block = 0;
    Block chosen{};
    for (std::uint32_t i = 0; i <= words; ++i) {
        const auto word = first_word + i < words ? first_word + i : first_word + i - words;
        auto left = some[word] & ~full[word];
        if (i == 0) left &= from_first;
        if (i == words) left &= ~from_first;
        for (; left; left &= left - 1) {
            const auto block = word * 64 + static_cast<std::uint32_t>(std::countr_zero(left));
            Block bits;
            candidates(state, to, source, block, bits);
            if (!any(bits)) continue;
            Block by_all = bits;
            for (std::int32_t j = 0; j < to.onward_count; ++j)
                by_all &= ~block_of(state.claimed, block, to.onward[j]);
            if (any(by_all)) return block * chunks_per_block + one_of(by_all, random);
            const int level = most_wanted(state, to, block, bits);
            if (level > best) {
                best = level;
                best_block = block;
                chosen = bits;
            }
            if (++ranked == most_ranked)
                return best_block * chunks_per_block + one_of(chosen, random);
        }
    }
    return best < 0 ? no_chunk : best_block * chunks_per_block + one_of(chosen, random);
}

// A slot that had nothing to send in the round before can only send what arrived since.
WEFT_INLINE std::uint32_t among_arrived(const RoundState& state, const Receiver& to,
                                        std::int32_t source, std::uint64_t random, bool& several) {
    const auto begin = state.first[source], count = state.first[source + 1] - begin;
    const auto turn =
        static_cast<std::int64_t>(random % static_cast<std::uint64_t>(count | !count));
    std::uint32_t found = no_chunk;
    for (std::int64_t i = 0; i < count; ++i) {
        const auto at = i + turn < count ? i + turn : i + turn - count;
        const auto label = state.arrived(begin + at, to.round);
        if (label == no_chunk || state.claimed.has(to.npu, label) || to.has_chosen(label)) continue;
        if (found != no_chunk) several = true;
        if (found == no_chunk) found = label;
    }
    return found;
}

// The NPUs beyond the receiver that still lack something, other than the one it gets from.
WEFT_INLINE void look_onward(const RoundState& state, Receiver& to, std::int32_t source,
                             std::uint64_t random) {
    const auto all = state.onward[to.npu];
    const auto count = static_cast<std::uint32_t>(all.size());
    auto at = count > most_onward ? static_cast<std::uint32_t>(random >> 32) % count : 0;
    to.onward_count = 0;
    for (std::uint32_t i = 0; i < count && to.onward_count < most_onward; ++i) {
        if (all[at] != source && state.lacks[all[at]]) to.onward[to.onward_count++] = all[at];
        if (++at == count) at = 0;
    }
}

WEFT_INLINE std::uint32_t choose(RoundState& state, Receiver& to, std::int64_t slot,
                                 std::uint64_t random) {
    const auto source = state.src[slot];
    if (state.dry_in[slot] + 1 == to.round) {
        bool several = false;
        const auto label = among_arrived(state, to, source, random, several);
        if (!several) state.dry_in[slot] = to.round;
        return label;
    }
    look_onward(state, to, source, random);
    const auto label = search(state, to, source, random);
    if (label == no_chunk) state.dry_in[slot] = to.round;
    return label;
}

}  // namespace

WEFT_VECTOR_CLONES
void plan_round(RoundState& state, std::int32_t begin, std::int32_t end, std::uint32_t round,
                std::uint64_t seed, std::span<const std::uint16_t> range_of,
                std::span<std::int64_t> counts) {
    // Blocks follow each other in an order that comes near to every one soon.
    const auto first_block = (round * 0x9E3779B1u >> 8) % state.blocks;
    std::uint32_t* const picks = state.picks(round);
    std::vector<std::uint32_t> chosen;
    for (auto npu = begin; npu < end; ++npu) {
        const auto first = state.first[npu], count = state.first[npu + 1] - first;
        std::fill_n(picks + first, count, no_chunk);
        if (!state.lacks[npu] || !count) continue;
        Random random(seed ^
                      (static_cast<std::uint64_t>(round) << 32 | static_cast<std::uint32_t>(npu)));
        chosen.resize(count);
        Receiver to{npu, round, first_block, 0, 0, {}, chosen.data(), {}, 0};
        // Among equals none is always first; else the quickest are.
        const auto turn = state.alike[npu] ? random.below(static_cast<std::uint32_t>(count)) : 0;
        std::int64_t idle = 0;  // quicker slots that carry nothing
        for (std::int64_t i = 0; i < count; ++i) {
            const auto slot = first + (i + turn < count ? i + turn : i + turn - count);
            const auto lacks = static_cast<std::int64_t>(state.lacks[npu]) - to.chosen_count;
            if (lacks <= 0) break;
            if (state.free_from[slot] > round) continue;
            // While the quicker links are all at work and bring the rest sooner, the slow one
            // rests.
            if (idle == 0 && lacks <= state.spare[slot]) continue;
            const auto label = choose(state, to, slot, random());
            if (label == no_chunk) {
                ++idle;
                continue;
            }
            picks[slot] = label;
            to.choose(label);
            state.free_from[slot] = round + static_cast<std::uint32_t>(state.period[slot]);
            ++counts[range_of[slot]];
        }
    }
}

}  // namespace weft
