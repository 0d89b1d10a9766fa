#include "unicast.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "list_schedule.h"
#include "random.h"

namespace weft {
namespace {

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

// The hops of a path one after the other; the longest way still to go first.
Schedule schedule_paths(const Hops& hops, const HopTimes& times,
                        const std::vector<std::vector<std::int32_t>>& paths, Progress& progress) {
    Tasks tasks;
    for (std::size_t chunk = 0; chunk < paths.size(); ++chunk)
        for (std::size_t i = 0; i < paths[chunk].size(); ++i) {
            const auto task = tasks.add(paths[chunk][i], static_cast<std::int32_t>(chunk), false);
            if (i > 0) tasks.order(task - 1, task);
        }
    return list_schedule(hops, times, tasks, tasks.tails(times), progress);
}

}  // namespace

Schedule route_and_schedule(const Hops& hops, const HopTimes& times, const Unicast& unicast,
                            std::uint64_t seed, ps bound, Progress& progress) {
    std::vector<std::vector<std::int32_t>> paths;
    if (!Router(hops, times, unicast, bound).route(seed, paths)) return {};
    Schedule schedule = schedule_paths(hops, times, paths, progress);
    if (progress.cancelled) throw Cancelled();
    return schedule;
}

}  // namespace weft
