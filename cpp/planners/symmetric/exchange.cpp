// All-to-All from NPU 0: each chunk is a number of steps along each dimension, in any order. When
// a resource is free it carries the chunk that has the farthest still to go.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "planners/symmetric/symmetric.h"

namespace weft {
namespace {

// More attempts are made up to so many steps of chunks in all, and so many attempts.
constexpr std::int64_t kWork = 1 << 18, kAttempts = 8;

// What is left of the way of a chunk along one dimension.
struct Leg {
    std::int32_t direction = -1;
    std::int32_t steps = 0;
};

using Legs = std::vector<Leg>;  // by chunk and dimension, chunks being v * pieces + piece

// The shortest way to each NPU. Where both ways round a ring are as long, every other chunk takes
// the one, so that both directions carry the same.
Legs shortest_ways(const Directions& d, const Grid& grid, std::int32_t pieces) {
    const auto dimensions = d.sizes.size();
    std::vector<std::vector<std::int32_t>> by_step(dimensions);
    for (std::size_t k = 0; k < dimensions; ++k) by_step[k].assign(d.sizes[k], -1);
    for (std::size_t i = 0; i < d.step.size(); ++i)
        by_step[d.dimension[i]][d.step[i]] = static_cast<std::int32_t>(i);
    const auto chunks = static_cast<std::size_t>(grid.npus()) * pieces;
    Legs legs(chunks * dimensions);
    for (std::size_t k = 0; k < dimensions; ++k) {
        const auto size = d.sizes[k];
        bool up = false;
        for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
            const auto v = static_cast<std::int32_t>(chunk / pieces);
            const auto far = grid.coordinate(v, static_cast<std::int32_t>(k));
            if (far == 0) continue;
            auto& leg = legs[chunk * dimensions + k];
            if (by_step[k][far] >= 0) {
                leg = {by_step[k][far], 1};
                continue;
            }
            if (2 * far == size) up = !up;
            const bool forward = 2 * far < size || (2 * far == size && up);
            leg = forward ? Leg{by_step[k][1], far} : Leg{by_step[k][size - 1], size - far};
        }
    }
    return legs;
}

class Exchange {
  public:
    Exchange(const Directions& directions, const Grid& grid, Legs legs, std::uint64_t seed,
             Progress& progress)
        : d_(directions), grid_(grid), legs_(std::move(legs)), dimensions_(d_.sizes.size()),
          chunks_(static_cast<std::int32_t>(legs_.size() / dimensions_)), progress_(progress),
          place_(chunks_), left_(chunks_), tie_(chunks_), waiting_(d_.hold.size()),
          free_(d_.hold.size()), load_(d_.hold.size()) {
        Random random(seed);
        for (auto& tie : tie_) tie = static_cast<std::uint32_t>(random());
    }

    SymmetricPlan run() {
        SymmetricPlan plan;
        plan.time = 0;
        std::size_t wanted = 0;
        for (std::int32_t chunk = 0; chunk < chunks_; ++chunk) {
            for (std::size_t k = 0; k < dimensions_; ++k)
                if (const auto& way = leg(chunk, k); way.steps > 0) {
                    left_[chunk] += way.steps;
                    load_[d_.resource[way.direction]] +=
                        way.steps * d_.hold[d_.resource[way.direction]];
                }
            wanted += static_cast<std::size_t>(left_[chunk]);
            wait(chunk);
        }
        progress_.begin(static_cast<std::int64_t>(wanted));
        plan.rows.reserve(wanted);
        std::vector<std::int32_t> order(free_.size());
        for (std::size_t r = 0; r < order.size(); ++r) order[r] = static_cast<std::int32_t>(r);
        for (ps now = 0; plan.rows.size() < wanted; now = next_time(now)) {
            if (progress_.cancelled) throw Cancelled();
            progress_.done = static_cast<std::int64_t>(plan.rows.size());
            while (!arrivals_.empty() && arrivals_.top().first <= now) {
                const auto chunk = arrivals_.top().second;
                arrivals_.pop();
                wait(chunk);
            }
            // The busiest decides when all ends: it chooses first.
            std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
                return std::pair(-load_[a], a) < std::pair(-load_[b], b);
            });
            for (auto resource : order)
                if (free_[resource] <= now) serve(resource, now, plan);
        }
        return plan;
    }

  private:
    // A chunk that could go on over a resource: what is left of its way in picoseconds, a tie
    // breaker, how many steps that are, and the chunk. With other steps left it has gone on.
    using Waiting = std::tuple<ps, std::uint32_t, std::int32_t, std::int32_t>;
    using Arrival = std::pair<ps, std::int32_t>;

    // The chunk is somewhere on its way and can go on along any dimension that is left.
    void wait(std::int32_t chunk) {
        ps rest = 0;
        for (std::size_t k = 0; k < dimensions_; ++k)
            if (const auto& way = leg(chunk, k); way.steps > 0)
                rest += way.steps * d_.duration[d_.resource[way.direction]];
        for (std::size_t k = 0; k < dimensions_; ++k)
            if (const auto& way = leg(chunk, k); way.steps > 0)
                waiting_[d_.resource[way.direction]].emplace(rest, tie_[chunk], left_[chunk],
                                                             chunk);
    }
    void serve(std::int32_t resource, ps now, SymmetricPlan& plan) {
        auto& queue = waiting_[resource];
        while (!queue.empty()) {
            const auto [rest, tie, left, chunk] = queue.top();
            queue.pop();
            if (left != left_[chunk]) continue;  // it has gone on elsewhere
            for (std::size_t k = 0; k < dimensions_; ++k) {
                auto& way = leg(chunk, k);
                if (way.steps == 0 || d_.resource[way.direction] != resource) continue;
                plan.rows.push_back({chunk, place_[chunk], way.direction, now});
                place_[chunk] =
                    grid_.moved(place_[chunk], d_.dimension[way.direction], d_.step[way.direction]);
                --way.steps;
                break;
            }
            const ps end = now + d_.duration[resource];
            free_[resource] = now + d_.hold[resource];
            load_[resource] -= d_.hold[resource];
            plan.time = std::max(plan.time, end);
            if (--left_[chunk] > 0) arrivals_.emplace(end, chunk);
            return;
        }
    }
    // When next a chunk can go on, or a resource on which chunks wait is free.
    ps next_time(ps now) const {
        ps next = arrivals_.empty() ? never : arrivals_.top().first;
        for (std::size_t r = 0; r < free_.size(); ++r)
            if (free_[r] > now && !waiting_[r].empty()) next = std::min(next, free_[r]);
        return next;
    }
    Leg& leg(std::int32_t chunk, std::size_t k) {
        return legs_[static_cast<std::size_t>(chunk) * dimensions_ + k];
    }

    const Directions& d_;
    const Grid& grid_;
    Legs legs_;
    const std::size_t dimensions_;
    const std::int32_t chunks_;
    Progress& progress_;
    std::vector<std::int32_t> place_;  // by chunk: where it is
    std::vector<std::int32_t> left_;   // by chunk: steps to go
    std::vector<std::uint32_t> tie_;
    std::vector<std::priority_queue<Waiting>> waiting_;
    std::vector<ps> free_, load_;  // by resource; the load is what it must still carry
    std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
};

}  // namespace

SymmetricPlan exchange_from_one(const Directions& directions, std::int32_t pieces,
                                const Search& search) {
    const Grid grid(directions);
    if (grid.npus() == 1) return {{}, 0};
    const Legs legs = shortest_ways(directions, grid, pieces);
    const auto attempt = [&](std::uint64_t number) {
        return Exchange(directions, grid, legs, search.seed + number, search.progress).run();
    };
    SymmetricPlan best = attempt(0);
    const auto work = static_cast<std::int64_t>(best.rows.size());
    const auto attempts = std::min(kAttempts, kWork / std::max<std::int64_t>(work, 1));
    for (std::int64_t i = 0; i < attempts && best.time > search.goal; ++i) {
        auto other = attempt(static_cast<std::uint64_t>(i) + 1);
        if (other.time < best.time) best = std::move(other);
    }
    return best;
}

}  // namespace weft
