// Data flow of any algorithm, exactly: what every place holds, event by event.
#include <bit>
#include <memory>
#include <unordered_map>

#include "judge/parts.h"

namespace weft::judge {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{8} << 30;
constexpr int place_bits = 29;
enum Buffer : std::int32_t { home, input, output };

std::int32_t place_of(Buffer buffer, std::int32_t chunk) {
    return (static_cast<std::int32_t>(buffer) << place_bits) | chunk;
}

// What a place holds. Never changed once made, so copies share it.
struct Value {
    std::int32_t chunk;
    // Of a reduction: which contributions (by rank in the chunk's `pre` set) are in the sum, and
    // one that is in it more than once, or -1. A chunk that is not summed is always whole.
    std::vector<std::uint64_t> contributions;
    std::int32_t twice = -1;
};
using Held = std::shared_ptr<const Value>;

Held sum(const Value& a, const Value& b) {
    auto result = std::make_shared<Value>(a);
    if (result->twice < 0) result->twice = b.twice;
    for (std::size_t w = 0; w < b.contributions.size(); ++w) {
        const std::uint64_t both = a.contributions[w] & b.contributions[w];
        if (both && result->twice < 0)
            result->twice = static_cast<std::int32_t>(w * 64) + std::countr_zero(both);
        result->contributions[w] |= b.contributions[w];
    }
    return result;
}

// The places of all NPUs, as far as they were written; the others hold what they hold at first.
class Memory {
  public:
    explicit Memory(const Claim& claim) : claim_(claim) {}

    Held read(std::int32_t npu, std::int32_t place) const {
        const auto found = written_.find(key(npu, place));
        return found != written_.end() ? found->second : initial(npu, place);
    }
    void write(std::int32_t npu, std::int32_t place, Held value) {
        written_[key(npu, place)] = std::move(value);
    }
    bool was_written(std::int32_t npu, std::int32_t place) const {
        return written_.contains(key(npu, place));
    }
    static std::uint64_t key(std::int32_t npu, std::int32_t place) {
        return static_cast<std::uint64_t>(npu) << 32 | static_cast<std::uint32_t>(place);
    }

  private:
    Held initial(std::int32_t npu, std::int32_t place) const {
        if (place >> place_bits > input) return nullptr;
        const std::int32_t chunk = place & ((1 << place_bits) - 1);
        const auto owners = claim_.chunks.sets[claim_.chunks.pre[chunk]];
        const auto owner = std::lower_bound(owners.begin(), owners.end(), npu);
        if (owner == owners.end() || *owner != npu) return nullptr;
        auto value = std::make_shared<Value>(Value{chunk, {}});
        if (claim_.chunks.reduce[chunk]) {
            const auto rank = static_cast<std::size_t>(owner - owners.begin());
            value->contributions.resize((owners.size() + 63) / 64);
            value->contributions[rank / 64] |= std::uint64_t{1} << (rank % 64);
        }
        return value;
    }

    const Claim& claim_;
    std::unordered_map<std::uint64_t, Held> written_;
};

class Follower {
  public:
    Follower(const Claim& claim, std::span<const std::uint32_t> rows, std::int32_t first_chunk,
             std::int32_t last_chunk, bool by_time)
        : claim_(claim), rows_(rows), first_chunk_(first_chunk), last_chunk_(last_chunk),
          by_time_(by_time), memory_(claim) {}

    std::optional<Violation> run() {
        if (by_time_)
            run_by_time();
        else
            for (auto row : rows_) {
                now_ = row;
                put(row, take(row));
                if (found_) break;
            }
        if (!found_) check_end();
        return found_;
    }

  private:
    // Reads happen at a row's start, writes at its end, and what arrives at a time can be sent on
    // at that time. Local rows take no time: they read and write at once, in order of rows.
    struct Event {
        ps time;
        bool reads;
        std::uint32_t index;  // into rows_
        auto operator<=>(const Event&) const = default;
    };

    void run_by_time() {
        std::vector<Event> events;
        events.reserve(2 * rows_.size());
        for (std::uint32_t i = 0; i < rows_.size(); ++i) {
            events.push_back({claim_.rows.start[rows_[i]], true, i});
            if (!is_local(rows_[i])) events.push_back({claim_.rows.end[rows_[i]], false, i});
        }
        std::sort(events.begin(), events.end());
        std::vector<Held> flying(rows_.size());
        for (const Event& event : events) {
            const std::uint32_t row = rows_[event.index];
            now_ = event.time;
            if (!event.reads)
                put(row, std::move(flying[event.index]));
            else if (is_local(row))
                put(row, take(row));
            else
                flying[event.index] = take(row);
            if (found_) return;
        }
    }

    bool is_local(std::uint32_t row) const { return claim_.rows.src[row] == claim_.rows.dst[row]; }
    Held take(std::uint32_t row) {
        Held value = memory_.read(claim_.rows.src[row], claim_.rows.reads(row));
        if (!value) {
            const ps arrival = first_arrival(row);
            fail(arrival == never ? Code::never_held : Code::held_late, row, claim_.rows.src[row],
                 arrival);
        } else if (value->chunk != claim_.rows.chunk[row]) {
            fail(Code::wrong_chunk, row, claim_.rows.src[row], value->chunk);
        }
        return value;
    }

    void put(std::uint32_t row, Held value) {
        if (found_) return;
        const std::int32_t npu = claim_.rows.dst[row], place = claim_.rows.writes(row);
        if (claim_.rows.reduce[row]) {
            // Adding to nothing leaves what was added: relays begin with an empty sum.
            if (const Held old = memory_.read(npu, place)) {
                if (old->chunk != value->chunk) return fail(Code::mixed, row, npu, old->chunk);
                value = sum(*old, *value);
            }
        }
        memory_.write(npu, place, std::move(value));
    }

    // When (or in which row) something first comes to the place that a row finds empty.
    ps first_arrival(std::uint32_t row) const {
        ps arrival = never;
        for (auto other : rows_)
            if (other != row && claim_.rows.dst[other] == claim_.rows.src[row] &&
                claim_.rows.writes(other) == claim_.rows.reads(row))
                arrival = std::min(arrival, by_time_ ? claim_.rows.end[other] : ps{other});
        return arrival;
    }

    void fail(Code code, std::int64_t row, std::int32_t npu, std::int64_t other) {
        found_ = {.code = code,
                  .in_row_order = !by_time_,
                  .time = now_,
                  .row = row,
                  .chunk = claim_.rows.chunk[row],
                  .npu = npu,
                  .other = other};
    }

    void check_end() {
        for (auto chunk = first_chunk_; chunk < last_chunk_; ++chunk)
            for (auto npu : claim_.chunks.sets[claim_.chunks.post[chunk]]) {
                found_ = end_of(npu, chunk);
                if (found_) return;
            }
    }

    // The result lies in OUTPUT if anything was written there, else in HOME or INPUT. Both hold at
    // first what the NPU brings; once one is written, the other counts only if it is written too.
    std::optional<Violation> end_of(std::int32_t npu, std::int32_t chunk) const {
        const auto was_written = [&](Buffer buffer) {
            return memory_.was_written(npu, place_of(buffer, chunk));
        };
        const auto wrong_in = [&](Buffer buffer) {
            return wrong_with(memory_.read(npu, place_of(buffer, chunk)), npu, chunk);
        };
        if (was_written(output)) return wrong_in(output);
        if (!was_written(input)) return wrong_in(home);
        const auto wrong = wrong_in(input);
        return wrong && was_written(home) ? wrong_in(home) : wrong;
    }

    std::optional<Violation> wrong_with(const Held& value, std::int32_t npu,
                                        std::int32_t chunk) const {
        const auto wrong = [&](Code code, std::int64_t other = -1) {
            return Violation{.code = code,
                             .in_row_order = !by_time_,
                             .time = never,
                             .chunk = chunk,
                             .npu = npu,
                             .other = other};
        };
        if (!value) return wrong(Code::never_received);
        if (value->chunk != chunk) return wrong(Code::wrong_at_end, value->chunk);
        const auto contributors = claim_.chunks.sets[claim_.chunks.pre[chunk]];
        if (value->twice >= 0) return wrong(Code::twice, contributors[value->twice]);
        if (claim_.chunks.reduce[chunk])
            for (std::size_t rank = 0; rank < contributors.size(); ++rank)
                if (!(value->contributions[rank / 64] >> (rank % 64) & 1))
                    return wrong(Code::missing, contributors[rank]);
        return std::nullopt;
    }

    const Claim& claim_;
    std::span<const std::uint32_t> rows_;
    std::int32_t first_chunk_, last_chunk_;
    bool by_time_;
    Memory memory_;
    ps now_ = 0;
    std::optional<Violation> found_;
};

// Bytes that the sums of these rows may need at once: one set in each place and one on its way.
std::int64_t bytes_needed(const Claim& claim, std::span<const std::uint32_t> rows) {
    std::unordered_map<std::uint64_t, std::int64_t> places;
    std::int64_t total = 0;
    for (auto row : rows) {
        if (!claim.chunks.reduce[claim.rows.chunk[row]]) continue;
        const auto contributors = static_cast<std::int64_t>(
            claim.chunks.sets[claim.chunks.pre[claim.rows.chunk[row]]].size());
        auto& bytes = places[Memory::key(claim.rows.dst[row], claim.rows.writes(row))];
        const std::int64_t needed = std::max(bytes, 2 * (contributors / 8 + 64));
        total += needed - bytes;
        bytes = needed;
    }
    return total;
}

}  // namespace

void follow_sets(const Claim& claim, std::span<const std::uint32_t> rows, std::int32_t first_chunk,
                 std::int32_t last_chunk, First& first) {
    if (const auto bytes = bytes_needed(claim, rows); bytes > most_bytes)
        // Anything else that was found is worth more than this: it comes last.
        return first.offer({.code = Code::too_large,
                            .in_row_order = true,
                            .time = never,
                            .row = rows.back(),
                            .other = bytes});
    for (const bool by_time : {true, false}) {
        if (by_time && !claim.timed) continue;
        if (auto found = Follower(claim, rows, first_chunk, last_chunk, by_time).run())
            first.offer(*found);
    }
}

}  // namespace weft::judge
