// What the files of the judge share with each other.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <tuple>
#include <vector>

#include "base/threads.h"
#include "judge/judge.h"

namespace weft::judge {

// Keeps the first of the violations offered to it.
class First {
    static auto key(const Violation& v) {
        return std::tuple(v.in_row_order, v.time, v.row, v.chunk, v.npu, v.link);
    }

  public:
    void offer(const Violation& violation) {
        if (!found_ || key(violation) < key(*found_)) found_ = violation;
    }
    void offer(const First& other) {
        if (other.found_) offer(*other.found_);
    }
    const std::optional<Violation>& found() const { return found_; }

  private:
    std::optional<Violation> found_;
};

// Calls worker(begin, end, first) on blocks of [0, count), each thread with a worker of its own,
// and returns the first violation of all.
template <class Worker>
First in_blocks(std::int64_t count, std::int64_t block, const auto& make_worker) {
    const std::int64_t blocks = (count + block - 1) / block;
    std::atomic<std::int64_t> next{0};
    std::mutex merging;
    First all;
    on_threads(static_cast<std::size_t>(std::min<std::int64_t>(cores(), blocks)), [&] {
        try {
            Worker worker = make_worker();
            First mine;
            for (std::int64_t b; (b = next++) < blocks;)
                worker(b * block, std::min(count, (b + 1) * block), mine);
            const std::lock_guard lock(merging);
            all.offer(mine);
        } catch (...) {
            next = blocks;
            throw;
        }
    });
    return all;
}

// What hops cost by the cost model. Few chunks differ in size, so a hop is computed once a route
// and size where that is fewer than rows; a 128-bit division a row would cost seconds.
class Hops {
  public:
    explicit Hops(const Claim& claim);

    struct Hop {
        ps duration;
        std::span<const Hold> holds;
    };
    using Scratch = std::vector<Hold>;

    // The hop of a row; valid until the next call with the same scratch.
    Hop of(std::int64_t row, Scratch& scratch) const {
        const std::int32_t route = claim_.rows.route[row], chunk = claim_.rows.chunk[row];
        if (durations_.empty()) return compute(route, claim_.chunks.bytes[chunk], scratch);
        const std::size_t size = size_of_[chunk];
        const auto offset = claim_.timing->routes.offsets[route];
        return {durations_[size * routes() + route],
                {holds_.data() + size * claim_.timing->routes.items.size() + offset,
                 static_cast<std::size_t>(claim_.timing->routes.offsets[route + 1] - offset)}};
    }

  private:
    std::size_t routes() const { return claim_.timing->routes.offsets.size() - 1; }
    Hop compute(std::int32_t route, std::int64_t bytes, Scratch& scratch) const;

    const Claim& claim_;
    std::vector<std::uint8_t> size_of_;  // of each chunk: the number of its size
    std::vector<ps> durations_;          // by size, then route
    std::vector<Hold> holds_;            // by size, then as the links of the routes lie
};

// Whether numbers are in range and routes lead where rows say.
First check_rows(const Claim& claim);

// Whether starts, durations and dependencies fit the cost model and each other.
First check_times(const Claim& claim, const Hops& hops);

// Whether each link carries one chunk at a time.
First check_links(const Claim& claim, const Hops& hops);

// Whether data flows: sources hold what they send, and all ends where it must.
First check_flow(const Claim& claim);

// The same for some rows and the chunks [first_chunk, last_chunk) they are about, by following
// the set of contributions in every place: any algorithm, but not in linear time.
void follow_sets(const Claim& claim, std::span<const std::uint32_t> rows, std::int32_t first_chunk,
                 std::int32_t last_chunk, First& first);

}  // namespace weft::judge
