// Ways for chunks that each go to one NPU: shortest ones first, then detours off busy links.
#include <cmath>
#include <numeric>

#include "base/flat_index.h"
#include "base/random.h"
#include "planners/unicast/congestion.h"
#include "planners/unicast/paths.h"

namespace weft {
namespace {

constexpr double far = 1e300;

// Chunks of one size that go to the same NPU and may visit the same NPUs.
struct Target {
    std::int32_t dst, reach, size;
};

class Router {
  public:
    Router(const Hops& hops, const Unicast& unicast, double thrift, std::uint64_t seed, ps bound,
           Progress& progress)
        : hops_(hops), unicast_(unicast), progress_(progress), random_(seed),
          bound_(static_cast<double>(std::max<ps>(bound, 1))), npus_(hops.out.size()),
          loads_(hops, unicast.times, thrift), paths_(unicast.src.size()), cost_(npus_),
          via_(npus_), seen_(npus_, 0), open_(npus_, 0) {
        find_targets();
    }

    RoutedPaths run() {
        const bool all_found = find_distances();
        if (all_found) {
            take_shortest_paths();
            balance();
        }
        return {std::move(paths_), static_cast<ps>(std::llround(loads_.largest())), all_found};
    }

  private:
    void find_targets() {
        FlatIndex numbers;
        const auto sets = static_cast<std::uint64_t>(unicast_.sets.size()) + 1;
        target_of_.resize(unicast_.src.size());
        for (std::int32_t c = 0; c < unicast_.chunks(); ++c) {
            const Target target{unicast_.dst[c], unicast_.reach[c], unicast_.size[c]};
            const auto key = (static_cast<std::uint64_t>(target.size) * sets +
                              static_cast<std::uint64_t>(target.reach + 1)) *
                                 npus_ +
                             target.dst;
            target_of_[c] = numbers.of(key);
            if (numbers.size() > targets_.size()) targets_.push_back(target);
        }
        chunks_of_ = group_by(target_of_, static_cast<std::int32_t>(targets_.size()));
    }

    // Marks the NPUs that chunks for a target may visit.
    void open(const Target& target) {
        ++opened_;
        if (target.reach < 0)
            std::fill(open_.begin(), open_.end(), opened_);
        else
            for (auto npu : unicast_.sets[target.reach]) open_[npu] = opened_;
    }
    bool is_open(std::int32_t npu) const { return open_[npu] == opened_; }

    // Hops from every NPU to every target; false if some chunk has no way.
    bool find_distances() {
        distance_.assign(targets_.size() * npus_, unreached);
        std::vector<std::int32_t> queue;
        for (std::size_t t = 0; t < targets_.size(); ++t) {
            auto* distance = distance_.data() + t * npus_;
            open(targets_[t]);
            queue.assign(1, targets_[t].dst);
            distance[targets_[t].dst] = 0;
            for (std::size_t i = 0; i < queue.size(); ++i) {
                for (auto hop : hops_.in[queue[i]]) {
                    auto& there = distance[hops_.src[hop]];
                    if (there != unreached || !is_open(hops_.src[hop])) continue;
                    there = static_cast<std::uint16_t>(distance[queue[i]] + 1);
                    queue.push_back(hops_.src[hop]);
                }
            }
            for (auto chunk : chunks_of_[t])
                if (distance[unicast_.src[chunk]] == unreached) return false;
        }
        return true;
    }

    // Every chunk by the cheapest of the paths with the fewest hops.
    void take_shortest_paths() {
        std::vector<std::int32_t> order(unicast_.src.size());
        std::iota(order.begin(), order.end(), 0);
        random_.shuffle(order);
        std::int64_t hops = 0;
        for (auto chunk : order) hops += distances_to(chunk)[unicast_.src[chunk]];
        paths_.reserve(hops);
        loads_.aim(std::max(bound_, static_cast<double>(hops) * loads_.mean_share()),
                   gentle_doublings);
        for (auto chunk : order) {
            if (progress_.cancelled) return;
            find_shortest(chunk);
            paths_.set(chunk, path_);
            loads_.add(path_, unicast_.size[chunk]);
            ++progress_.done;
        }
    }
    const std::uint16_t* distances_to(std::int32_t chunk) const {
        return distance_.data() + target_of_[chunk] * npus_;
    }

    // Forwards over the hops that lead nearer to the target, layer by layer.
    void find_shortest(std::int32_t chunk) {
        const auto* distance = distances_to(chunk);
        const auto size = unicast_.size[chunk];
        const auto src = unicast_.src[chunk], dst = unicast_.dst[chunk];
        ++stamp_;
        layer_.assign(1, src);
        cost_[src] = 0;
        seen_[src] = stamp_;
        for (std::size_t i = 0; i < layer_.size() && layer_[i] != dst; ++i) {
            const auto npu = layer_[i];
            for (auto hop : hops_.out[npu]) {
                const auto to = hops_.dst[hop];
                if (distance[to] + 1 != distance[npu]) continue;
                const double cost = cost_[npu] + loads_.cost(hop, size);
                if (seen_[to] != stamp_) {
                    seen_[to] = stamp_;
                    layer_.push_back(to);
                } else if (cost >= cost_[to]) {
                    continue;
                }
                cost_[to] = cost;
                via_[to] = hop;
            }
        }
        path_.resize(distance[src]);
        auto npu = dst;
        for (auto place = path_.rbegin(); place != path_.rend(); ++place) {
            *place = via_[npu];
            npu = hops_.src[via_[npu]];
        }
    }

    // Detours away from the busiest links, as long as that makes them less busy.
    void balance() {
        const double least_work = static_cast<double>(targets_.size()) * hops_.count();
        if (least_work > most_work_of_a_pass) return;
        const double work = static_cast<double>(unicast_.chunks()) * hops_.count();
        const auto batch = static_cast<std::int32_t>(std::ceil(work / work_of_a_pass));
        const int patience = batch > 1 ? 1 : 4;
        double least = loads_.largest();
        int doublings = batch > 1 ? first_doublings : gentle_doublings;
        for (int misses = 0; misses < patience && least > near_bound * bound_;) {
            // Gently first, with far to go. Then just below the largest load: nearer than that, and
            // short paths are not worth anything.
            const double part = doublings == gentle_doublings ? 0.5 : 0.95;
            loads_.aim(std::max(bound_, part * loads_.largest()), doublings);
            const auto moved = improve(std::max(batch, 1));
            if (moved == 0 || progress_.cancelled) return;
            const bool gains = loads_.largest() < 0.9995 * least;
            least = std::min(least, loads_.largest());
            misses = gains ? 0 : misses + 1;
            if (!gains || doublings > gentle_doublings)
                doublings = std::min(doublings + 1, most_doublings);
        }
    }
    // Offers every chunk a new way. Trees are grown for `batch` chunks each: those that come first
    // make the tree dearer for the others, so each looks at the true costs before it moves.
    std::int64_t improve(std::int32_t batch) {
        struct Unit {
            std::int32_t target;
            std::int64_t begin, end;
        };
        std::vector<Unit> units;
        auto& chunks = chunks_of_.items;
        for (std::int32_t t = 0; t < chunks_of_.size(); ++t) {
            const auto first = chunks_of_.offsets[t], last = chunks_of_.offsets[t + 1];
            for (auto i = last - first; i > 1; --i)
                std::swap(chunks[first + i - 1],
                          chunks[first + random_.below(static_cast<std::uint32_t>(i))]);
            for (auto begin = first; begin < last; begin += batch)
                units.push_back({t, begin, std::min(begin + batch, last)});
        }
        random_.shuffle(units);
        std::int64_t moved = 0;
        for (const auto& unit : units) {
            if (progress_.cancelled) return moved;
            const auto& target = targets_[unit.target];
            const bool alone = unit.end - unit.begin == 1;
            const auto only = chunks[unit.begin];
            if (alone) loads_.remove(paths_[only], target.size);
            grow_tree(target, alone ? unicast_.src[only] : -1,
                      [&](std::int32_t hop) { return loads_.cost(hop, target.size); });
            if (alone) loads_.add(paths_[only], target.size);
            for (auto i = unit.begin; i < unit.end; ++i) moved += offer(chunks[i]);
        }
        return moved;
    }
    // Takes a chunk out, and puts it on its way in the tree if that is cheaper, else back.
    bool offer(std::int32_t chunk) {
        const auto size = unicast_.size[chunk];
        const auto dst = unicast_.dst[chunk];
        if (cost_[unicast_.src[chunk]] > loads_.cost(paths_[chunk], size)) return false;
        path_.clear();
        for (auto npu = unicast_.src[chunk]; npu != dst; npu = hops_.dst[path_.back()])
            path_.push_back(via_[npu]);
        loads_.remove(paths_[chunk], size);
        const bool gains =
            loads_.cost(path_, size) < worth_moving * loads_.cost(paths_[chunk], size);
        if (gains) paths_.set(chunk, path_);
        loads_.add(paths_[chunk], size);
        return gains;
    }

    // The cheapest ways from everywhere to a target; from `until` at least, if it is not -1.
    template <class Cost>
    void grow_tree(const Target& target, std::int32_t until, Cost cost) {
        using Visit = std::pair<double, std::int32_t>;
        open(target);
        std::fill(cost_.begin(), cost_.end(), far);
        cost_[target.dst] = 0;
        heap_.assign(1, {0, target.dst});
        while (!heap_.empty()) {
            std::pop_heap(heap_.begin(), heap_.end(), std::greater<Visit>());
            const auto [so_far, npu] = heap_.back();
            heap_.pop_back();
            if (npu == until) return;
            if (so_far > cost_[npu]) continue;
            for (auto hop : hops_.in[npu]) {
                const auto from = hops_.src[hop];
                const double sum = so_far + cost(hop);
                if (sum >= cost_[from] || !is_open(from)) continue;
                cost_[from] = sum;
                via_[from] = hop;
                heap_.push_back({sum, from});
                std::push_heap(heap_.begin(), heap_.end(), std::greater<Visit>());
            }
        }
    }

    static constexpr std::uint16_t unreached = 0xffff;
    // Costs grow with a power of the load: gently at first, then ever more steeply.
    static constexpr int gentle_doublings = 3, first_doublings = 4, most_doublings = 7;
    // A move that gains less is not worth the restlessness.
    static constexpr double worth_moving = 0.999;
    static constexpr double near_bound = 1.001;
    static constexpr double work_of_a_pass = 1 << 21;
    // Hops looked at in one pass, at the least: beyond it takes minutes, and nothing is offered.
    static constexpr double most_work_of_a_pass = 1LL << 28;

    const Hops& hops_;
    const Unicast& unicast_;
    Progress& progress_;
    Random random_;
    double bound_;
    std::int64_t npus_;
    Congestion loads_;
    Paths paths_;
    std::vector<Target> targets_;
    std::vector<std::int32_t> target_of_;
    Rows chunks_of_;
    std::vector<std::uint16_t> distance_;  // by target and NPU
    // The search of the moment: by NPU.
    std::vector<double> cost_;
    std::vector<std::int32_t> via_, seen_, open_;
    std::vector<std::int32_t> layer_, path_;
    std::vector<std::pair<double, std::int32_t>> heap_;
    std::int32_t stamp_ = 0, opened_ = 0;
};

}  // namespace

RoutedPaths route(const Hops& hops, const Unicast& unicast, double thrift, std::uint64_t seed,
                  ps bound, Progress& progress) {
    return Router(hops, unicast, thrift, seed, bound, progress).run();
}

}  // namespace weft
