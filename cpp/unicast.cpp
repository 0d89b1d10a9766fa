#include "unicast.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "events.h"
#include "ports.h"
#include "random.h"

namespace weft {
namespace {

constexpr std::uint32_t release = ~std::uint32_t{0};  // Event::detail: a bundle is free again

class Router {
  public:
    Router(const Hops& hops, const HopTimes& times, const Unicast& unicast, ps bound)
        : hops_(hops), times_(times), unicast_(unicast),
          target_(static_cast<double>(std::max<ps>(bound, 1))), load_(hops.bundles.size(), 0),
          cost_(hops.count()), reached_(hops.out.size()), via_(hops.out.size()) {
        for (std::int32_t h = 0; h < hops.count(); ++h) cost_[h] = cost(h);
        hops_using_ = group_by(hops.steps.items, hops.bundles.size());
        hop_of_step_.reserve(hops.steps.items.size());
        for (std::int32_t h = 0; h < hops.count(); ++h)
            hop_of_step_.insert(hop_of_step_.end(), hops.steps[h].size(), h);
    }

    // The hops of each chunk's path; false if one has none.
    bool route(std::uint64_t seed, std::vector<std::vector<std::int32_t>>& paths) {
        paths.assign(unicast_.src.size(), {});
        std::vector<std::int32_t> order(paths.size());
        std::iota(order.begin(), order.end(), 0);
        Random(seed).shuffle(order);
        constexpr int passes = 2;  // the second moves what the first placed before it knew better
        for (int pass = 0; pass < passes; ++pass)
            for (auto chunk : order) {
                for (auto hop : paths[chunk]) put(hop, -1);
                if (!cheapest_path(unicast_.src[chunk], unicast_.dst[chunk], paths[chunk]))
                    return false;
                for (auto hop : paths[chunk]) put(hop, +1);
            }
        return true;
    }

  private:
    double cost(std::int32_t hop) const {
        double steepest = 0;
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i) {
            const auto bundle = hops_.steps.items[i];
            const auto links = static_cast<double>(hops_.bundles[bundle].size());
            const double full = (load_[bundle] / links + double(times_.holds[i].length)) / target_;
            const double square = full * full, fourth = square * square;
            steepest = std::max(steepest, fourth * fourth);
        }
        return static_cast<double>(times_.duration[hop]) * (0.02 + steepest);
    }

    void put(std::int32_t hop, int sign) {
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i) {
            const auto bundle = hops_.steps.items[i];
            load_[bundle] += sign * static_cast<double>(times_.holds[i].length);
            for (auto step : hops_using_[bundle]) cost_[hop_of_step_[step]] = cost(hop_of_step_[step]);
        }
    }

    bool cheapest_path(std::int32_t src, std::int32_t dst, std::vector<std::int32_t>& path) {
        using Visit = std::pair<double, std::int32_t>;
        std::priority_queue<Visit, std::vector<Visit>, std::greater<>> queue;
        std::fill(reached_.begin(), reached_.end(), 1e300);
        reached_[src] = 0;
        queue.push({0, src});
        while (!queue.empty()) {
            const auto [so_far, npu] = queue.top();
            queue.pop();
            if (npu == dst) break;
            if (so_far > reached_[npu]) continue;
            for (auto hop : hops_.out[npu]) {
                const auto to = hops_.dst[hop];
                if (so_far + cost_[hop] >= reached_[to]) continue;
                reached_[to] = so_far + cost_[hop];
                via_[to] = hop;
                queue.push({reached_[to], to});
            }
        }
        path.clear();
        if (reached_[dst] == 1e300) return false;
        for (auto npu = dst; npu != src; npu = hops_.src[via_[npu]]) path.push_back(via_[npu]);
        std::reverse(path.begin(), path.end());
        return true;
    }

    const Hops& hops_;
    const HopTimes& times_;
    const Unicast& unicast_;
    double target_;
    std::vector<double> load_;  // per bundle: time its links are held
    std::vector<double> cost_;  // per hop
    std::vector<double> reached_;
    std::vector<std::int32_t> via_;
    Rows hops_using_;  // steps by bundle
    std::vector<std::int32_t> hop_of_step_;
};

// List scheduling along given paths: when a hop can start, the waiting chunk with the longest way
// still to go starts.
template <class Ports>
class PathScheduler {
  public:
    PathScheduler(const Hops& hops, const HopTimes& times,
                  const std::vector<std::vector<std::int32_t>>& paths)
        : hops_(hops), times_(times), paths_(paths), ports_(hops, times), waiting_(hops.count()),
          is_ready_(hops.count(), false), at_(paths.size(), 0), to_go_(paths.size(), 0),
          events_(all_delays()), hops_using_(group_by(hops.steps.items, hops.bundles.size())) {
        for (std::int32_t h = 0; h < hops.count(); ++h)
            hop_of_step_.insert(hop_of_step_.end(), hops.steps[h].size(), h);
    }

    Schedule run() {
        for (std::size_t chunk = 0; chunk < paths_.size(); ++chunk) {
            for (auto hop : paths_[chunk]) to_go_[chunk] += times_.duration[hop];
            if (!paths_[chunk].empty()) enqueue(static_cast<std::int32_t>(chunk));
        }
        start_ready_hops();
        while (!events_.empty()) {
            now_ = events_.next_time();
            events_.pop_all(now_, [&](const Event& event) {
                if (event.detail == release)
                    for (auto step : hops_using_[event.subject]) wake(hop_of_step_[step]);
                else
                    on_arrival(static_cast<std::int32_t>(event.subject));
            });
            start_ready_hops();
        }
        schedule_.time = last_arrival_;
        schedule_.routes = ports_.take_routes();
        return std::move(schedule_);
    }

  private:
    std::vector<ps> all_delays() const {
        std::vector<ps> delays(times_.duration);
        for (const auto& hold : times_.holds) delays.push_back(hold.offset + hold.length);
        for (const auto& hold : times_.holds) delays.push_back(hold.length);
        return delays;
    }

    void enqueue(std::int32_t chunk) {
        const auto hop = paths_[chunk][at_[chunk]];
        waiting_[hop].push({to_go_[chunk], -chunk});
        wake(hop);
    }
    void wake(std::int32_t hop) {
        if (is_ready_[hop] || waiting_[hop].empty()) return;
        is_ready_[hop] = true;
        ready_.push_back(hop);
    }

    void start_ready_hops() {
        std::sort(ready_.begin(), ready_.end(), [&](auto a, auto b) {
            return waiting_[a].top() > waiting_[b].top();
        });
        for (auto hop : ready_) {
            is_ready_[hop] = false;
            if (ports_.take(hop, now_)) start(hop);
        }
        ready_.clear();
    }

    void start(std::int32_t hop) {
        const auto chunk = -waiting_[hop].top().second;
        waiting_[hop].pop();
        schedule_.chunk.push_back(chunk);
        schedule_.hop.push_back(hop);
        if (!hops_.single_links) schedule_.route.push_back(ports_.route(hop));
        schedule_.start.push_back(now_);
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i) {
            // A later hop may need the link only some time after its own start: look twice.
            const Hold hold = times_.holds[i];
            events_.push(now_, events_.lane(hold.length), hops_.steps.items[i], release);
            if (hold.offset > 0)
                events_.push(now_, events_.lane(hold.offset + hold.length), hops_.steps.items[i],
                             release);
        }
        events_.push(now_, events_.lane(times_.duration[hop]), static_cast<std::uint32_t>(chunk),
                     0);
    }

    void on_arrival(std::int32_t chunk) {
        to_go_[chunk] -= times_.duration[paths_[chunk][at_[chunk]]];
        last_arrival_ = now_;
        if (++at_[chunk] < paths_[chunk].size()) enqueue(chunk);
    }

    const Hops& hops_;
    const HopTimes& times_;
    const std::vector<std::vector<std::int32_t>>& paths_;
    Ports ports_;
    // By hop: (time still to go, minus the chunk's number), the longest first.
    std::vector<std::priority_queue<std::pair<ps, std::int32_t>>> waiting_;
    std::vector<bool> is_ready_;
    std::vector<std::int32_t> ready_;
    std::vector<std::size_t> at_;  // per chunk: how far along its path
    std::vector<ps> to_go_;
    EventQueue events_;
    Rows hops_using_;  // steps by bundle
    std::vector<std::int32_t> hop_of_step_;
    ps now_ = 0, last_arrival_ = 0;
    Schedule schedule_;
};

}  // namespace

Schedule route_and_schedule(const Hops& hops, const HopTimes& times, const Unicast& unicast,
                            std::uint64_t seed, int trials, ps bound) {
    Schedule best;
    for (int trial = 0; trial < trials && best.time > bound; ++trial) {
        std::vector<std::vector<std::int32_t>> paths;
        Router router(hops, times, unicast, bound);
        if (!router.route(seed + static_cast<std::uint64_t>(trial), paths)) return {};
        Schedule schedule = hops.single_links
                                ? PathScheduler<LinkPorts>(hops, times, paths).run()
                                : PathScheduler<RoutedPorts>(hops, times, paths).run();
        if (schedule.time < best.time) best = std::move(schedule);
    }
    return best;
}

}  // namespace weft
