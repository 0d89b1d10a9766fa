#include "planners/rounds/state.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace weft {

RoundState::RoundState(const Network& network, std::span<const std::int32_t> link_period,
                       std::span<const std::int32_t> link_lag, std::span<const std::int32_t> owner,
                       std::uint64_t seed)
    : npus(network.npus), chunks(static_cast<std::uint32_t>(owner.size())),
      blocks((chunks + chunks_per_block - 1) / chunks_per_block), summary_words((blocks + 63) / 64),
      claimed(npus, blocks), some_(static_cast<std::size_t>(npus) * summary_words, 0),
      full_(some_) {
    order_slots(network, link_period, link_lag);
    if (longest_lag > 1) later_.emplace(npus, blocks);
    picks_.assign((longest_lag + 1) * link.size(), no_chunk);
    hand_out(owner, seed);
}

void RoundState::order_slots(const Network& network, std::span<const std::int32_t> link_period,
                             std::span<const std::int32_t> link_lag) {
    first.assign(1, 0);
    for (std::int32_t npu = 0; npu < npus; ++npu) {
        const auto in = network.in[npu];
        const auto begin = static_cast<std::ptrdiff_t>(link.size());
        link.insert(link.end(), in.begin(), in.end());
        std::stable_sort(link.begin() + begin, link.end(), [&](auto a, auto b) {
            return std::pair(link_lag[a], link_period[a]) < std::pair(link_lag[b], link_period[b]);
        });
        first.push_back(static_cast<std::int64_t>(link.size()));
    }
    for (const auto number : link) {
        src.push_back(network.src[number]);
        period.push_back(link_period[number]);
        lag.push_back(link_lag[number]);
        longest_lag = std::max(longest_lag, lag.back());
        longest_period = std::max(longest_period, period.back());
    }
    free_from.assign(link.size(), 0);
    dry_in.assign(link.size(), no_round);
    for (std::int32_t npu = 0; npu < npus; ++npu) {
        for (auto slot = first[npu]; slot < first[npu + 1]; ++slot) {
            std::int64_t brought = 0;
            for (auto quick = first[npu]; quick < slot; ++quick)
                if (lag[quick] < lag[slot]) brought += (lag[slot] - lag[quick]) / period[quick];
            spare.push_back(static_cast<std::int32_t>(std::min<std::int64_t>(brought, 1 << 30)));
        }
        const auto last = first[npu + 1] - 1;
        alike.push_back(last < first[npu] ||
                        (lag[first[npu]] == lag[last] && period[first[npu]] == period[last]));
        std::vector<std::int32_t> next;
        for (const auto out : network.out[npu]) next.push_back(network.dst[out]);
        std::sort(next.begin(), next.end());
        next.erase(std::unique(next.begin(), next.end()), next.end());
        onward.items.insert(onward.items.end(), next.begin(), next.end());
        onward.close();
    }
}

void RoundState::hand_out(std::span<const std::int32_t> owner, std::uint64_t seed) {
    std::vector<std::uint32_t> label_of(chunks);
    number_of.resize(chunks);
    std::iota(number_of.begin(), number_of.end(), 0);
    Random random(seed);
    random.shuffle(number_of);
    for (std::uint32_t label = 0; label < chunks; ++label) label_of[number_of[label]] = label;

    lacks.assign(npus, 0);
    for (const auto npu : owner) lacks[npu] = chunks;  // who owns nothing is not there
    // Labels beyond the last chunk count as claimed: so the last block can be full.
    for (std::int32_t npu = 0; npu < npus; ++npu)
        for (auto label = chunks; label < blocks * chunks_per_block; ++label)
            claimed.add(npu, label);
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
        const auto npu = owner[chunk];
        claimed.add(npu, label_of[chunk]);
        receive(npu, label_of[chunk]);
        --lacks[npu];
    }
    for (const auto lacked : lacks) deliveries += lacked;
}

void RoundState::receive(std::int32_t npu, std::uint32_t label) {
    if (later_) later_->add(npu, label);
    mark(some_, npu, label / chunks_per_block);
}

void RoundState::commit(std::int32_t npu, std::uint32_t round) {
    const auto* now = picks(round);
    for (auto slot = first[npu]; slot < first[npu + 1]; ++slot) {
        if (const auto label = now[slot]; label != no_chunk) {
            claimed.add(npu, label);
            --lacks[npu];
            const auto* words = claimed.block(label / chunks_per_block, npu);
            std::uint64_t all = ~std::uint64_t{0};
            for (std::uint32_t i = 0; i < words_per_block; ++i) all &= words[i];
            if (all == ~std::uint64_t{0}) mark(full_, npu, label / chunks_per_block);
        }
        if (const auto label = arrived(slot, round + 1); label != no_chunk) receive(npu, label);
    }
}

}  // namespace weft
