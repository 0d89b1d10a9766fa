// How a log of rounds is read, and what its transfers cost: under judge_rounds.
#pragma once

#include <bit>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "judge/rounds.h"

namespace weft::judge {

// Reads rounds, which lie within the log; whether they are as long as they say is checked before
// the first is listed. The log may change meanwhile: then it says something else, but nothing is
// read outside of what is there. Each thread has a reader of its own.
class LogReader {
  public:
    explicit LogReader(const RoundClaim& claim)
        : claim_(claim), window_(claim.log), words_((claim.network->links() + 63) / 64),
          wide_(claim.chunks() > (1 << 16)) {}

    std::int64_t words() const { return words_; }
    std::int64_t width() const { return wide_ ? 4 : 2; }

    // The links that carry something in a round: calls act(number, word) for the words of 64.
    void each_word(std::int64_t round, auto&& act) {
        const auto begin = claim_.offsets[round];
        const auto bitmap = window_.at(begin, begin + 8 * words_);
        for (std::int64_t w = 0; w < words_; ++w) act(w, word(bitmap, w));
    }

    // Calls act(link, chunk) for the entries of a round, in ascending order of link.
    void each(std::int64_t round, auto&& act) {
        wide_ ? each_of<std::uint32_t>(round, act) : each_of<std::uint16_t>(round, act);
    }

  private:
    static std::uint64_t word(std::span<const std::uint8_t> bitmap, std::int64_t number) {
        std::uint64_t value;
        std::memcpy(&value, bitmap.data() + 8 * number, 8);
        return value;
    }

    template <class Number>
    void each_of(std::int64_t round, auto&& act) {
        const auto bytes = window_.at(claim_.offsets[round], claim_.offsets[round + 1]);
        const std::uint8_t* at = bytes.data() + 8 * words_;
        const std::uint8_t* end = bytes.data() + bytes.size();
        const std::uint64_t last = ~std::uint64_t{0} >> (63 & (64 - claim_.network->links() % 64));
        for (std::int64_t w = 0; w < words_; ++w) {
            std::uint64_t bits = word(bytes, w);
            if (w + 1 == words_) bits &= last;
            if (end - at < std::popcount(bits) * static_cast<std::int64_t>(sizeof(Number))) return;
            for (; bits != 0; bits &= bits - 1, at += sizeof(Number)) {
                Number chunk;
                std::memcpy(&chunk, at, sizeof(Number));
                act(static_cast<std::int32_t>(64 * w + std::countr_zero(bits)),
                    static_cast<std::uint32_t>(chunk));
            }
        }
    }

    const RoundClaim& claim_;
    LogWindow window_;
    std::int64_t words_;
    bool wide_;
};

// What transfers cost, by kinds of link and sizes of chunk, of which there are few.
class RoundCosts {
  public:
    explicit RoundCosts(const RoundClaim& claim) : claim_(claim) {
        std::map<std::int64_t, std::uint32_t> sizes;
        for (auto bytes : claim.bytes) sizes.try_emplace(bytes, 0);
        std::uint32_t number = 0;
        for (auto& [bytes, size] : sizes) size = number++;
        for (auto bytes : claim.bytes) size_of_.push_back(sizes[bytes]);
        sizes_ = std::max<std::size_t>(sizes.size(), 1);
        std::map<std::pair<std::int64_t, ps>, std::uint32_t> kinds;
        for (const Speed& speed : claim.network->speed) {
            const auto [at, added] = kinds.try_emplace({speed.bandwidth, speed.latency},
                                                       static_cast<std::uint32_t>(kinds.size()));
            kind_of_.push_back(at->second);
            if (!added) continue;
            for (const auto& [bytes, size] : sizes) {
                Hold hold{};
                durations_.push_back(hop(claim.cost, bytes, {&speed, 1}, {&hold, 1}));
                holds_.push_back(hold.length);
            }
        }
        find_lags(kinds.size());
    }

    ps duration(std::int32_t link, std::int64_t chunk) const { return durations_[at(link, chunk)]; }
    ps hold(std::int32_t link, std::int64_t chunk) const { return holds_[at(link, chunk)]; }
    // For the largest chunk: sizes are in ascending order.
    ps longest(std::int32_t link) const { return durations_[(kind_of_[link] + 1) * sizes_ - 1]; }
    // After so many rounds, what was sent can be sent on; also backwards, where it may be enough
    // to wait for less: see `judge_rounds`.
    std::int64_t lag(std::int32_t link, std::int64_t chunk) const {
        return one_lag_ ? lags_.front() : lags_[at(link, chunk)];
    }
    std::int64_t longest_lag() const { return longest_lag_; }
    ps longest_hold() const { return longest_hold_; }
    ps longest_duration() const { return longest_duration_; }

  private:
    std::size_t at(std::int32_t link, std::int64_t chunk) const {
        return kind_of_[link] * sizes_ + size_of_[chunk];
    }

    void find_lags(std::size_t kinds) {
        for (std::size_t k = 0; k < kinds; ++k)
            for (std::size_t s = 0; s < sizes_; ++s) {
                ps wait = durations_[k * sizes_ + s];
                for (std::size_t other = 0; claim_.sums && other < kinds; ++other)
                    wait = std::max(wait, durations_[(k + 1) * sizes_ - 1] -
                                              durations_[(other + 1) * sizes_ - 1] +
                                              durations_[other * sizes_ + s]);
                lags_.push_back(std::min((wait - 1) / claim_.slot + 1, claim_.rounds() + 1));
                longest_lag_ = std::max(longest_lag_, lags_.back());
            }
        for (ps hold : holds_) longest_hold_ = std::max(longest_hold_, hold);
        for (ps duration : durations_) longest_duration_ = std::max(longest_duration_, duration);
        one_lag_ = !lags_.empty() && std::equal(lags_.begin() + 1, lags_.end(), lags_.begin());
    }

    const RoundClaim& claim_;
    std::size_t sizes_ = 1;
    std::vector<std::uint32_t> size_of_, kind_of_;  // of each chunk, of each link
    std::vector<ps> durations_, holds_;             // by kind, then size
    std::vector<std::int64_t> lags_;
    std::int64_t longest_lag_ = 1;
    ps longest_hold_ = 0, longest_duration_ = 0;
    bool one_lag_ = false;
};

}  // namespace weft::judge
