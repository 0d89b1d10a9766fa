// Trees from NPU 0, grown event by event: whenever a resource is free it takes a chunk on to an
// NPU that lacks it, to the one with the fewest other ways in, since that will soon have none; a
// slow one first to parts of the network that have nothing yet.
#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>

#include "base/random.h"
#include "planners/symmetric/symmetric.h"

namespace weft {
namespace {

// NPUs with more ways in than this are told apart no further: they are in no danger.
constexpr int kMostWays = 31;
// More attempts are made up to so many edges looked at in all, and so many attempts.
constexpr std::int64_t kWork = 1 << 20, kAttempts = 24;
// Where between the goal and the best so far the deadlines of further attempts lie.
constexpr std::array<double, 4> kDeadlines{0.0, 0.25, 0.5, 1.0};

using Target = std::uint32_t;  // piece * npus + npu

// The targets that a resource can serve, by rank. Ranks only become higher, so a target is put
// where it belongs when it is found where it was.
class Offers {
  public:
    void add(Target target, int rank) {
        by_rank_[rank].push_back(target);
        ++count_;
    }
    std::size_t count() const { return count_; }  // served ones included, until they are found

    // One of the targets of the lowest rank, at random; false if there is none up to rank `most`.
    // `rank_of` gives -1 for those that have been served.
    template <class RankOf>
    bool take(Random& random, int most, RankOf rank_of, Target& taken) {
        for (int rank = 0; rank <= most; ++rank) {
            auto& targets = by_rank_[rank];
            while (!targets.empty()) {
                auto& chosen = targets[random.below(static_cast<std::uint32_t>(targets.size()))];
                taken = std::exchange(chosen, targets.back());
                targets.pop_back();
                const int now = rank_of(taken);
                if (now > rank) {
                    by_rank_[now].push_back(taken);
                    continue;
                }
                --count_;
                if (now == rank) return true;
            }
        }
        return false;
    }

  private:
    std::array<std::vector<Target>, kMostWays + 1> by_rank_;
    std::size_t count_ = 0;
};

// A resource that all directions of a dimension share: the port to a switch. By line and piece:
// who has the piece first, and whether someone has it or will; any member of a line will do.
struct Port {
    std::int32_t resource, dimension;
    std::int32_t first;  // of its directions, which are one for each step
    std::vector<std::int32_t> holder;
    std::vector<bool> claimed;
};

// The parts of the network that dimensions faster than one's own join. A slow resource does best to
// bring a chunk to a part where it is not yet: the rest of the part is soon served from there.
struct Parts {
    std::vector<std::int32_t> faster;   // dimensions; none for the fastest
    std::vector<std::uint8_t> entered;  // by piece and first NPU of a part: it is there, or will be
    std::size_t left = 0;               // parts of pieces that are still to be entered
};

class Growth {
  public:
    Growth(const Directions& directions, const Grid& grid, std::int32_t pieces, std::uint64_t seed,
           Progress& progress)
        : d_(directions), grid_(grid), n_(grid.npus()), pieces_(pieces), random_(seed),
          progress_(progress), ways_(static_cast<std::size_t>(n_) * pieces), served_(ways_.size()),
          offers_(d_.hold.size()), free_(d_.hold.size()) {
        find_ports();
        find_parts();
    }

    SymmetricPlan until(ps deadline) {
        SymmetricPlan plan;
        plan.time = 0;
        const auto wanted = ways_.size() - static_cast<std::size_t>(pieces_);
        progress_.begin(static_cast<std::int64_t>(wanted));
        plan.rows.reserve(wanted);
        for (std::int32_t piece = 0; piece < pieces_; ++piece) claim(target(piece, 0));
        for (std::int32_t piece = 0; piece < pieces_; ++piece) arrive(target(piece, 0));
        std::vector<std::int32_t> order(free_.size());
        for (std::size_t r = 0; r < order.size(); ++r) order[r] = static_cast<std::int32_t>(r);
        for (ps now = 0; plan.rows.size() < wanted; now = next_time(now)) {
            if (now == never) return {};
            if (progress_.cancelled) throw Cancelled();
            progress_.done = static_cast<std::int64_t>(plan.rows.size());
            while (!arrivals_.empty() && arrivals_.top().first <= now) {
                const auto arrived = arrivals_.top().second;
                arrivals_.pop();
                arrive(arrived);
            }
            // Those with the least to choose from choose first.
            std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
                return std::pair(offers_[a].count(), a) < std::pair(offers_[b].count(), b);
            });
            for (auto resource : order)
                if (free_[resource] <= now && now + d_.duration[resource] <= deadline)
                    serve(resource, now, plan);
        }
        return plan;
    }

  private:
    using Arrival = std::pair<ps, Target>;

    void find_ports() {
        std::vector<std::int32_t> users(d_.hold.size());
        direction_of_.assign(d_.hold.size(), -1);
        for (auto resource : d_.resource) ++users[resource];
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(d_.step.size()); ++i) {
            const auto resource = d_.resource[i], dimension = d_.dimension[i];
            if (users[resource] == 1) {
                links_.push_back(i);
                direction_of_[resource] = i;
            } else if (d_.step[i] == 1) {
                const auto lines = static_cast<std::size_t>(grid_.lines(dimension)) * pieces_;
                ports_.push_back({resource, dimension, i, std::vector<std::int32_t>(lines, -1),
                                  std::vector<bool>(lines)});
            }
        }
    }
    void find_parts() {
        std::vector<ps> pace(d_.sizes.size(), 0);
        dimension_of_.assign(d_.hold.size(), 0);
        for (std::size_t i = 0; i < d_.step.size(); ++i) {
            dimension_of_[d_.resource[i]] = d_.dimension[i];
            pace[d_.dimension[i]] = d_.hold[d_.resource[i]];
        }
        parts_.resize(pace.size());
        for (std::size_t k = 0; k < pace.size(); ++k) {
            for (std::size_t other = 0; other < pace.size(); ++other)
                if (pace[other] > 0 && pace[other] < pace[k])
                    parts_[k].faster.push_back(static_cast<std::int32_t>(other));
            if (parts_[k].faster.empty()) continue;
            parts_[k].entered.resize(ways_.size());
            parts_[k].left = ways_.size();
            for (auto other : parts_[k].faster)
                parts_[k].left /= static_cast<std::size_t>(grid_.size(other));
        }
    }
    // The target has its chunk or will have it: others can count on getting it from there.
    void claim(Target mine) {
        served_[mine] = 1;
        for (auto& parts : parts_) {
            if (parts.left == 0) continue;
            auto& entered = parts.entered[part_of(parts, mine)];
            parts.left -= entered ? 0 : 1;
            entered = 1;
        }
        const auto piece = static_cast<std::int32_t>(mine / n_);
        const auto npu = static_cast<std::int32_t>(mine % n_);
        for (auto i : links_)
            one_more_way(target(piece, grid_.moved(npu, d_.dimension[i], d_.step[i])));
        for (auto& port : ports_) {
            const auto line = line_of(port, mine);
            if (port.claimed[line]) continue;
            port.claimed[line] = true;
            for (std::int32_t step = 1; step < grid_.size(port.dimension); ++step)
                one_more_way(target(piece, grid_.moved(npu, port.dimension, step)));
        }
    }
    // The target has its chunk now and can hand it on.
    void arrive(Target mine) {
        const auto piece = static_cast<std::int32_t>(mine / n_);
        const auto npu = static_cast<std::int32_t>(mine % n_);
        for (auto i : links_)
            offer(d_.resource[i], target(piece, grid_.moved(npu, d_.dimension[i], d_.step[i])));
        for (auto& port : ports_) {
            auto& holder = port.holder[line_of(port, mine)];
            if (holder >= 0) continue;
            holder = npu;
            for (std::int32_t step = 1; step < grid_.size(port.dimension); ++step)
                offer(port.resource, target(piece, grid_.moved(npu, port.dimension, step)));
        }
    }
    // Lets a free resource carry something, if it has anything to carry.
    void serve(std::int32_t resource, ps now, SymmetricPlan& plan) {
        Target taken = 0;
        const auto rank_of = [&](Target other) { return rank(resource, other); };
        // What it carried last arrives a little after it is free, and may be what others wait for.
        const ps lead = d_.duration[resource] - d_.hold[resource];
        const bool waits = parts_[dimension_of_[resource]].left > 0 && now < free_[resource] + lead;
        if (!offers_[resource].take(random_, waits ? 0 : kMostWays, rank_of, taken)) return;
        const auto piece = static_cast<std::int32_t>(taken / n_);
        const auto npu = static_cast<std::int32_t>(taken % n_);
        auto way = direction_of_[resource];
        std::int32_t src = 0;
        if (way >= 0) {
            src = grid_.moved(npu, d_.dimension[way], grid_.size(d_.dimension[way]) - d_.step[way]);
        } else {
            const auto port = std::find_if(ports_.begin(), ports_.end(),
                                           [&](const Port& p) { return p.resource == resource; });
            src = port->holder[line_of(*port, taken)];
            const auto size = grid_.size(port->dimension);
            const auto step =
                grid_.coordinate(npu, port->dimension) - grid_.coordinate(src, port->dimension);
            way = port->first + (step > 0 ? step : step + size) - 1;
        }
        claim(taken);
        const ps end = now + d_.duration[resource];
        free_[resource] = now + d_.hold[resource];
        arrivals_.emplace(end, taken);
        plan.rows.push_back({piece, src, way, now});
        plan.time = std::max(plan.time, end);
    }
    // When next a chunk arrives, or a resource that has something to carry is free.
    ps next_time(ps now) const {
        ps next = arrivals_.empty() ? never : arrivals_.top().first;
        for (std::size_t r = 0; r < free_.size(); ++r)
            if (free_[r] > now && offers_[r].count() > 0) next = std::min(next, free_[r]);
        return next;
    }

    Target target(std::int32_t piece, std::int32_t npu) const {
        return static_cast<Target>(piece) * n_ + npu;
    }
    std::size_t line_of(const Port& port, Target target) const {
        return static_cast<std::size_t>(target / n_) * grid_.lines(port.dimension) +
               grid_.line(target % n_, port.dimension);
    }
    void one_more_way(Target target) {
        if (ways_[target] < kMostWays) ++ways_[target];
    }
    // The first target of the part in which a target lies.
    Target part_of(const Parts& parts, Target target) const {
        auto npu = static_cast<std::int32_t>(target % n_);
        const Target before = target - npu;
        for (auto k : parts.faster)
            if (const auto at = grid_.coordinate(npu, k); at > 0)
                npu = grid_.moved(npu, k, grid_.size(k) - at);
        return before + npu;
    }
    // What a resource serves first: parts of the network that have nothing yet, then targets with
    // few ways in. -1 if it has been served.
    int rank(std::int32_t resource, Target target) const {
        if (served_[target]) return -1;
        const auto& parts = parts_[dimension_of_[resource]];
        if (parts.left > 0 && !parts.entered[part_of(parts, target)]) return 0;
        return ways_[target];
    }
    void offer(std::int32_t resource, Target target) {
        if (const int now = rank(resource, target); now >= 0) offers_[resource].add(target, now);
    }

    const Directions& d_;
    const Grid& grid_;
    const std::int32_t n_, pieces_;
    Random random_;
    Progress& progress_;
    std::vector<std::uint8_t> ways_;  // by target: resources that can serve it, or soon will
    std::vector<std::uint8_t> served_;
    std::vector<Offers> offers_;
    std::vector<ps> free_;
    std::vector<std::int32_t> links_;  // directions that share their resource with none
    std::vector<Port> ports_;
    std::vector<std::int32_t> direction_of_;  // by resource, where it has one direction only
    std::vector<std::int32_t> dimension_of_;  // by resource
    std::vector<Parts> parts_;                // by dimension
    std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
};

}  // namespace

SymmetricPlan spread_from_one(const Directions& directions, std::int32_t pieces,
                              const Search& search) {
    const Grid grid(directions);
    const auto attempt = [&](std::uint64_t number, ps deadline) {
        return Growth(directions, grid, pieces, search.seed + number, search.progress)
            .until(deadline);
    };
    SymmetricPlan best = attempt(0, never);
    const auto work = static_cast<std::int64_t>(grid.npus()) * pieces *
                      static_cast<std::int64_t>(directions.step.size());
    const auto attempts = std::min(kAttempts, kWork / std::max<std::int64_t>(work, 1));
    for (std::int64_t i = 0; i < attempts && best.time > search.goal; ++i) {
        const auto room = static_cast<double>(best.time - 1 - search.goal);
        const auto share = kDeadlines[static_cast<std::size_t>(i) % kDeadlines.size()];
        auto other =
            attempt(static_cast<std::uint64_t>(i) + 1, search.goal + static_cast<ps>(room * share));
        if (other.time < best.time) best = std::move(other);
    }
    return best;
}

}  // namespace weft
