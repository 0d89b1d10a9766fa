// One pass over the log judges copies and sums alike.
//
// Copies. A bit for each NPU and chunk says that the chunk is there. Round after round, what was
// sent `lag` rounds ago arrives, then every source must have what it sends; at the end all bits are
// set.
//
// Sums. An entry of round r over link l says that the NPU at the head of l sends its partial sum to
// the one at the tail, from T - r·slot - D(l) on, D being the time of the largest chunk and T the
// end of all. A sum is right if every NPU but the owner sends its partial exactly once, the owner
// never, and nobody sends before all it gets of that chunk has arrived. For then every NPU but the
// owner has one way out, and each way leads to a later send: no circles, so all ways end at the
// owner, the NPUs form a tree, every contribution gets to the owner, and over one way only. These
// are conditions on single entries and on pairs, so the order of reading is free: in the order of
// the log, "has sent" is the same bit as "has the chunk" above, it must not be set twice, and an
// entry needs it at its tail, set by an entry that starts no earlier than this one ends. With times
// put in, the pair (s: the tail's own send, x: what it gets) must have
//     r(s)·slot + D(s) <= r(x)·slot + D(x) - d(x),    d being the time of the chunk itself.
// On links of one speed that is the condition for copies. On others the bit is set when it
// holds for every x, and an entry that comes sooner is looked at by itself.
//
// Chunks are judged apart from each other: each thread takes some, and reads the whole log.
#include "judge/rounds.h"

#include <algorithm>
#include <mutex>
#include <tuple>

#include "base/parallel.h"
#include "judge/log.h"

namespace weft::judge {
namespace {

constexpr std::int64_t most_bytes = 128 << 20;  // of bits at once, a thread
constexpr std::size_t ahead = 24;               // entries between a prefetch and its use

struct Finding {
    // When it was come upon: round, then stage of a round, then as the log lists it.
    std::tuple<std::int64_t, int, std::int64_t, std::int64_t> at;
    RoundViolation violation;
};
using Found = std::optional<Finding>;

std::optional<RoundViolation> check_shape(const RoundClaim& claim, LogReader& log) {
    const std::int64_t rounds = claim.rounds(), links = claim.network->links();
    if (rounds < 0 || claim.offsets[0] != 0) return RoundViolation{RoundCode::offsets, 0};
    const std::int64_t size = claim.log.size();
    std::int64_t entries = 0;
    for (std::int64_t r = 0; r < rounds; ++r) {
        const std::int64_t begin = claim.offsets[r], end = claim.offsets[r + 1];
        if (end < begin || end > size) return RoundViolation{RoundCode::offsets, r};
        std::int64_t there = 0, needed = 8 * log.words();
        std::uint64_t last = 0;
        if (end - begin >= needed) {
            log.each_word(r, [&](std::int64_t, std::uint64_t word) {
                there += std::popcount(word);
                last = word;
            });
            needed += (there * log.width() + 7) / 8 * 8;
        }
        if (end - begin != needed)
            return RoundViolation{.code = RoundCode::length, .round = r, .other = needed};
        if (links % 64 != 0 && last >> links % 64 != 0) return RoundViolation{RoundCode::beyond, r};
        entries += there;
    }
    if (claim.offsets[rounds] != size) return RoundViolation{RoundCode::offsets, rounds};
    if (entries != claim.count) return RoundViolation{.code = RoundCode::count, .other = entries};
    return std::nullopt;
}

std::optional<RoundViolation> check_twins(const RoundClaim& claim, LogReader& log) {
    std::vector<std::uint64_t> lone(log.words());
    for (std::size_t link = 0; link < claim.has_reverse.size(); ++link)
        lone[link / 64] |= std::uint64_t{!claim.has_reverse[link]} << link % 64;
    std::optional<RoundViolation> wrong;
    for (std::int64_t r = 0; r < claim.rounds() && !wrong; ++r)
        log.each_word(r, [&](std::int64_t w, std::uint64_t word) {
            const auto bits = word & lone[w];
            if (bits && !wrong)
                wrong = RoundViolation{RoundCode::no_reverse, r,
                                       static_cast<std::int32_t>(64 * w + std::countr_zero(bits))};
        });
    return wrong;
}

// When the last copy ends, all chunks taken for the largest.
ps end_of(const RoundClaim& claim, LogReader& log, const RoundCosts& costs) {
    ps end = 0;
    for (auto r = claim.rounds() - 1; r >= 0 && r * claim.slot + costs.longest_duration() > end;
         --r)
        log.each(r, [&](std::int32_t link, std::uint32_t) {
            end = std::max(end, r * claim.slot + costs.longest(link));
        });
    return end;
}

// What the threads share.
struct Case {
    const RoundClaim& claim;
    RoundCosts costs;
    ps end;

    Case(const RoundClaim& given, LogReader& log)
        : claim(given), costs(given), end(end_of(given, log, costs)) {}

    // When the sum of an entry starts, and when the copy does.
    ps sum_start(std::int64_t round, std::int32_t link) const {
        return end - round * claim.slot - costs.longest(link);
    }
    ps copy_start(std::int64_t round) const { return (claim.sums ? end : 0) + round * claim.slot; }

    struct Arrival {
        std::int64_t due, round;
        std::int32_t link;
        auto operator<=>(const Arrival&) const = default;
    };
    // All that brings a chunk to an NPU, by the round in which it is there. Reads all of the log.
    std::vector<Arrival> arrivals(LogReader& log, std::int32_t npu, std::int64_t chunk) const {
        std::vector<Arrival> found;
        for (std::int64_t r = 0; r < claim.rounds(); ++r)
            log.each(r, [&](std::int32_t link, std::uint32_t number) {
                if (number == chunk && claim.network->dst[link] == npu)
                    found.push_back({r + costs.lag(link, chunk), r, link});
            });
        std::sort(found.begin(), found.end());
        return found;
    }
};

// Judges the chunks [first, last) in all rounds; and of the links, if any is held for more than a
// slot, those of [first_link, last_link).
class Shard {
  public:
    Shard(const Case& all, std::int32_t first, std::int32_t last, std::int32_t first_link,
          std::int32_t last_link)
        : all_(all), claim_(all.claim), log_(all.claim), first_(first), chunks_(last - first),
          first_link_(first_link), last_link_(last_link), stride_((chunks_ + 63) / 64),
          bits_(static_cast<std::size_t>(claim_.network->npus) * stride_),
          owner_(claim_.owner.begin() + first, claim_.owner.begin() + last),
          own_(claim_.network->links() + 1), due_(all.costs.longest_lag() + 1) {
        for (std::uint32_t c = 0; c < chunks_; ++c)
            if (owner_[c] >= 0) set(bit(owner_[c], c));
        if (all.costs.longest_hold() > claim_.slot) last_use_.resize(last_link - first_link);
    }

    Found run(Progress& progress) {
        const auto length = static_cast<std::int64_t>(due_.size());
        for (std::int64_t r = 0; r < claim_.rounds() + length; ++r) {
            if (progress.cancelled) return std::nullopt;
            if (auto found = arrive(r)) return found;
            if (r >= claim_.rounds()) continue;
            if (auto found = collect(r)) return found;
            if (!last_use_.empty())
                if (auto found = check_links(r)) return found;
            if (auto found = send(r)) return found;
            progress.done += claim_.offsets[r + 1] - claim_.offsets[r];
        }
        return check_end();
    }

  private:
    struct Entry {
        std::int32_t link;
        std::uint32_t chunk;  // counted from first_
    };
    struct Use {
        std::int64_t round = -1;
        std::uint32_t chunk = 0;
    };

    std::uint64_t bit(std::int32_t npu, std::uint32_t chunk) const {
        return static_cast<std::uint64_t>(npu) * (64 * stride_) + chunk;
    }
    bool is_set(std::uint64_t at) const { return bits_[at / 64] >> at % 64 & 1; }
    void set(std::uint64_t at) { bits_[at / 64] |= std::uint64_t{1} << at % 64; }

    static Finding at(std::int64_t round, int stage, const RoundViolation& violation) {
        return {{round, stage, violation.round, violation.link}, violation};
    }

    // What was sent `lag` rounds ago is there now.
    Found arrive(std::int64_t round) {
        auto& due = due_[round % due_.size()];
        for (std::size_t i = 0; i < due.size(); ++i) {
            if (i + ahead < due.size()) __builtin_prefetch(&bits_[due[i + ahead] / 64], 1);
            if (claim_.sums && is_set(due[i])) return at(round, 0, sent_again(due[i]));
            set(due[i]);
        }
        due.clear();
        return std::nullopt;
    }

    RoundViolation sent_again(std::uint64_t place) {
        const auto npu = static_cast<std::int32_t>(place / (64 * stride_));
        const auto chunk = static_cast<std::int64_t>(place % (64 * stride_));
        const auto sends = all_.arrivals(log_, npu, first_ + chunk);
        const bool owns = owner_[chunk] == npu;
        if (sends.size() < (owns ? 1 : 2)) throw LogChanged();
        const auto& wrong = sends[!owns];
        return {.code = owns ? RoundCode::owner_sends : RoundCode::sent_twice,
                .round = wrong.round,
                .link = wrong.link,
                .chunk = first_ + chunk,
                .npu = npu,
                .time = all_.sum_start(wrong.round, wrong.link),
                .other = sends[0].round};
    }

    // The entries of the round about the chunks of this shard.
    Found collect(std::int64_t round) {
        std::uint32_t most = 0;
        count_ = 0;
        log_.each(round, [&](std::int32_t link, std::uint32_t chunk) {
            most = std::max(most, chunk);
            own_[count_] = {link, chunk - first_};
            count_ += chunk - first_ < chunks_;
        });
        if (most < static_cast<std::uint32_t>(claim_.chunks())) return std::nullopt;
        std::optional<RoundViolation> wrong;
        log_.each(round, [&](std::int32_t link, std::uint32_t chunk) {
            if (!wrong && chunk >= static_cast<std::uint32_t>(claim_.chunks()))
                wrong = {
                    .code = RoundCode::chunk_range, .round = round, .link = link, .chunk = chunk};
        });
        return at(round, 1, *wrong);
    }

    // Whether links are free again. Backwards it is the entry that the log has later that must be
    // over in time.
    Found check_links(std::int64_t round) {
        Found found;
        log_.each(round, [&](std::int32_t link, std::uint32_t chunk) {
            if (found || link < first_link_ || link >= last_link_) return;
            Use& last = last_use_[link - first_link_];
            if (last.round >= 0) {
                const ps passed = (round - last.round) * claim_.slot;
                const ps copy = all_.costs.hold(link, last.chunk);
                const ps sum = all_.costs.hold(link, chunk);
                const auto taken = [&](std::int64_t at_round, std::uint32_t what,
                                       std::int64_t other, ps time, ps until) {
                    found = at(round, 2,
                               {.code = RoundCode::link_taken,
                                .round = at_round,
                                .link = link,
                                .chunk = what,
                                .time = time,
                                .until = until,
                                .other = other});
                };
                if (claim_.sums && sum > passed)
                    taken(last.round, last.chunk, round, all_.sum_start(last.round, link),
                          all_.sum_start(round, link) + sum);
                else if (claim_.spreads && copy > passed)
                    taken(round, chunk, last.round, all_.copy_start(round),
                          all_.copy_start(last.round) + copy);
            }
            last = {round, chunk};
        });
        return found;
    }

    Found send(std::int64_t round) {
        const auto& src = claim_.network->src;
        const auto& dst = claim_.network->dst;
        for (std::size_t i = 0; i < count_; ++i) {
            if (i + ahead < count_) {
                const Entry& soon = own_[i + ahead];
                __builtin_prefetch(&bits_[bit(src[soon.link], soon.chunk) / 64]);
            }
            const auto [link, chunk] = own_[i];
            if (!is_set(bit(src[link], chunk)))
                if (auto wrong = unheld(round, own_[i])) return at(round, 3, *wrong);
            const std::int64_t when = round + all_.costs.lag(link, first_ + chunk);
            due_[when % due_.size()].push_back(bit(dst[link], chunk));
        }
        return std::nullopt;
    }

    // What is wrong with an entry at whose tail the bit is not set; nothing if its own times are
    // right all the same.
    std::optional<RoundViolation> unheld(std::int64_t round, Entry entry) {
        const std::int32_t link = entry.link, npu = claim_.network->src[link];
        if (owner_[entry.chunk] < 0) {
            owner_[entry.chunk] = npu;
            set(bit(npu, entry.chunk));
            return std::nullopt;
        }
        const std::int64_t chunk = first_ + entry.chunk;
        const auto before = all_.arrivals(log_, npu, chunk);
        RoundViolation wrong{.code = RoundCode::never_held,
                             .round = round,
                             .link = link,
                             .chunk = chunk,
                             .npu = npu};
        wrong.time = all_.copy_start(round);
        if (claim_.sums) {
            wrong.code = RoundCode::lost;
            wrong.until = all_.sum_start(round, link) + all_.costs.duration(link, chunk);
            if (before.empty()) return wrong;
            wrong.code = RoundCode::sent_early;
            wrong.time = all_.sum_start(before[0].round, before[0].link);
            if (wrong.time < wrong.until) return wrong;
        }
        if (!claim_.spreads) return std::nullopt;
        wrong.code = RoundCode::held_late;
        wrong.time = all_.copy_start(round);
        wrong.until = never;
        for (const auto& arrival : before)
            wrong.until = std::min(wrong.until, all_.copy_start(arrival.round) +
                                                    all_.costs.duration(arrival.link, chunk));
        if (wrong.until <= wrong.time) return std::nullopt;
        if (wrong.until == never) wrong.code = RoundCode::never_held;
        return wrong;
    }

    // Whether all is everywhere: the first chunk that is not, and where it is missing first.
    Found check_end() {
        const auto& present = claim_.present;
        std::vector<std::uint64_t> everywhere(stride_, ~std::uint64_t{0});
        for (std::size_t npu = 0; npu < present.size(); ++npu)
            for (std::size_t w = 0; present[npu] && w < stride_; ++w)
                everywhere[w] &= bits_[npu * stride_ + w];
        for (std::uint32_t c = 0; c < chunks_; ++c) {
            if (everywhere[c / 64] >> c % 64 & 1) continue;
            // A chunk that nobody sends may have any owner: right if there is but one NPU.
            bool spare = owner_[c] < 0;
            for (std::size_t npu = 0; npu < present.size(); ++npu) {
                if (!present[npu] || is_set(bit(static_cast<std::int32_t>(npu), c))) continue;
                if (std::exchange(spare, false)) continue;
                const auto code = claim_.sums ? RoundCode::never_sent : RoundCode::never_received;
                const std::int64_t chunk = first_ + c;
                return Finding{
                    {never, 0, chunk, static_cast<std::int64_t>(npu)},
                    {.code = code, .chunk = chunk, .npu = static_cast<std::int32_t>(npu)}};
            }
        }
        return std::nullopt;
    }

    const Case& all_;
    const RoundClaim& claim_;
    LogReader log_;
    std::uint32_t first_, chunks_;
    std::int32_t first_link_, last_link_;
    std::size_t stride_;               // words an NPU
    std::vector<std::uint64_t> bits_;  // by NPU, then chunk
    std::vector<std::int32_t> owner_;
    std::vector<Entry> own_;  // of the round at hand; one more, for what is written and not kept
    std::size_t count_ = 0;
    std::vector<std::vector<std::uint64_t>> due_;  // bits to set, by round modulo their number
    std::vector<Use> last_use_;                    // of each link; none if all are free each slot
};

// How many chunks a shard has: enough shards for all cores, none of them too large.
std::int32_t shard_chunks(const RoundClaim& claim, int threads) {
    const std::int64_t words = (claim.chunks() + 63) / 64;
    const std::int64_t bytes = 8 * words * claim.network->npus;
    const std::int64_t shards = std::max<std::int64_t>(threads, bytes / most_bytes + 1);
    return static_cast<std::int32_t>(64 * std::max<std::int64_t>(1, (words + shards - 1) / shards));
}

}  // namespace

std::optional<RoundViolation> judge_rounds(const RoundClaim& claim, Progress& progress) {
    LogReader log(claim);
    if (auto wrong = check_shape(claim, log)) return wrong;
    if (claim.sums)
        if (auto wrong = check_twins(claim, log)) return wrong;
    const Case all(claim, log);
    const std::int32_t width = shard_chunks(claim, cores());
    const std::int32_t shards = (claim.chunks() + width - 1) / width;
    const std::int64_t links = claim.network->links();
    progress.begin(claim.log.size() * shards);
    std::mutex merging;
    Found first;
    in_parallel(static_cast<std::size_t>(shards), cores(), [&](std::size_t number) {
        const auto s = static_cast<std::int32_t>(number);
        Shard shard(all, s * width, std::min(claim.chunks(), (s + 1) * width),
                    static_cast<std::int32_t>(links * s / shards),
                    static_cast<std::int32_t>(links * (s + 1) / shards));
        const Found found = shard.run(progress);
        const std::lock_guard lock(merging);
        if (found && (!first || found->at < first->at)) first = found;
    });
    if (progress.cancelled) throw Cancelled();
    return first ? std::optional(first->violation) : std::nullopt;
}

}  // namespace weft::judge
