// Times for chunks whose paths are decided.
#include <bit>
#include <tuple>

#include "base/ports.h"
#include "base/random.h"
#include "planners/hop_events.h"
#include "planners/unicast/paths.h"

namespace weft {
namespace {

// Chunks that wait for a hop, by level: the highest comes out first, of equals the one that came
// first. A chunk waits in one queue at most.
class WaitingChunks {
  public:
    WaitingChunks(std::int32_t hops, std::size_t chunks)
        : levels_(std::clamp(most_cells / std::max(hops, 1), 4, 64)), mask_(hops, 0),
          ends_(static_cast<std::size_t>(hops) * levels_), next_(chunks) {}

    int levels() const { return levels_; }
    bool empty(std::int32_t hop) const { return mask_[hop] == 0; }
    int top_level(std::int32_t hop) const { return std::bit_width(mask_[hop]) - 1; }
    std::int32_t front(std::int32_t hop) { return ends(hop, top_level(hop)).first; }

    void push(std::int32_t hop, int level, std::int32_t chunk) {
        auto& queue = ends(hop, level);
        const auto bit = std::uint64_t{1} << level;
        if (mask_[hop] & bit)
            next_[queue.last] = chunk;
        else
            queue.first = chunk;
        queue.last = chunk;
        mask_[hop] |= bit;
    }
    std::int32_t pop(std::int32_t hop) {
        const int level = top_level(hop);
        auto& queue = ends(hop, level);
        const auto chunk = queue.first;
        if (chunk == queue.last)
            mask_[hop] &= ~(std::uint64_t{1} << level);
        else
            queue.first = next_[chunk];
        return chunk;
    }

  private:
    struct Ends {
        std::int32_t first, last;
    };
    static constexpr std::int32_t most_cells = 1 << 23;

    Ends& ends(std::int32_t hop, int level) {
        return ends_[static_cast<std::size_t>(hop) * levels_ + level];
    }

    int levels_;
    std::vector<std::uint64_t> mask_;  // per hop: the levels that are not empty
    std::vector<Ends> ends_;
    std::vector<std::int32_t> next_;
};

template <class Ports>
class PathScheduler {
  public:
    PathScheduler(const Hops& hops, const Unicast& unicast, const Paths& paths, ps load,
                  Precedence precedence, std::uint64_t seed, Progress& progress)
        : hops_(hops), unicast_(unicast), paths_(paths), progress_(progress), ports_(hops),
          waiting_(hops.count(), unicast.src.size()), position_(unicast.src.size(), 0),
          rank_(unicast.src.size(), 0), is_ready_(hops.count(), 0), events_(hops, unicast.times),
          left_(hops.bundles.size(), 0) {
        rank_chunks(static_cast<double>(std::max<ps>(load, 1)), precedence, seed);
        if (!hops.single_links) hops_using_ = hops_by_bundle();
        schedule_.chunk.reserve(paths.hops());
        schedule_.hop.reserve(paths.hops());
        schedule_.start.reserve(paths.hops());
    }

    Schedule run() {
        for (std::int32_t chunk = 0; chunk < unicast_.chunks(); ++chunk)
            if (!paths_[chunk].empty()) enqueue(chunk);
        const bool ended = events_.run(
            now_, progress_, [&](auto bundle) { on_release(bundle); },
            [&](auto chunk) { on_arrival(chunk); }, [&] { start_ready_hops(); });
        if (!ended) return {};
        schedule_.time = now_;
        schedule_.routes = ports_.take_routes();
        return std::move(schedule_);
    }

  private:
    ps duration(std::span<const std::int32_t> path, std::int32_t chunk) const {
        ps sum = 0;
        for (auto hop : path) sum += times_of(chunk).duration[hop];
        return sum;
    }
    void rank_chunks(double load, Precedence precedence, std::uint64_t seed) {
        ps longest = 1;
        for (std::int32_t c = 0; c < unicast_.chunks(); ++c) {
            longest = std::max(longest, duration(paths_[c], c));
            for (auto hop : paths_[c])
                for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i)
                    left_[hops_.steps.items[i]] += times_of(c).holds[i].length;
        }
        // A rank is time before the end. It goes down as the chunk moves.
        urgency_ = precedence.urgency * load / static_cast<double>(longest);
        Random random(seed);
        for (std::int32_t c = 0; c < unicast_.chunks(); ++c) {
            const double least = urgency_ * static_cast<double>(duration(paths_[c], c));
            const double free = (load - least) * precedence.freedom;
            rank_[c] = static_cast<float>(least + free * random.fraction());
        }
        levels_of_rank_ = (waiting_.levels() - 0.01) / load;
    }
    Rows hops_by_bundle() const {
        Rows by_bundle = group_by(hops_.steps.items, hops_.bundles.size());
        std::vector<std::int32_t> hop_of_step;
        for (std::int32_t h = 0; h < hops_.count(); ++h)
            hop_of_step.insert(hop_of_step.end(), hops_.steps[h].size(), h);
        for (auto& step : by_bundle.items) step = hop_of_step[step];
        return by_bundle;
    }

    void enqueue(std::int32_t chunk) {
        const auto hop = paths_[chunk][position_[chunk]];
        const int level = static_cast<int>(std::max(rank_[chunk], 0.0f) * levels_of_rank_);
        waiting_.push(hop, level, chunk);
        wake(hop);
    }
    void wake(std::int32_t hop) {
        if (is_ready_[hop] || waiting_.empty(hop)) return;
        is_ready_[hop] = 1;
        ready_.push_back(hop);
    }

    void start_ready_hops() {
        if (!hops_.single_links) sort_ready();
        for (auto hop : ready_) {
            is_ready_[hop] = 0;
            const auto& times = times_of(waiting_.front(hop));
            if (ports_.take(hop, now_, times)) start(hop);
        }
        ready_.clear();
    }

    // Hops compete for links: those first whose busiest link has most to carry still, since a
    // link that idles while others have less left to do makes the end later.
    void sort_ready() {
        // Whoever has more left, then whoever is on a higher level, comes first.
        std::vector<std::tuple<double, int, std::int32_t, std::int32_t>> turns;
        const auto npus = hops_.out.size();
        for (auto hop : ready_) {
            if (ports_.blocked_at(hop, now_, times_of(waiting_.front(hop))) >= 0) {
                is_ready_[hop] = 0;
                continue;
            }
            double most = 0;
            for (auto bundle : hops_.steps[hop])
                most = std::max(most, static_cast<double>(left_[bundle]) /
                                          static_cast<double>(hops_.bundles[bundle].size()));
            turns.emplace_back(-most, -waiting_.top_level(hop),
                               (hops_.dst[hop] - hops_.src[hop] + npus) % npus, hop);
        }
        std::sort(turns.begin(), turns.end());
        ready_.clear();
        for (const auto& turn : turns) ready_.push_back(std::get<3>(turn));
    }

    void start(std::int32_t hop) {
        const auto chunk = waiting_.pop(hop);
        const auto size = unicast_.size[chunk];
        const auto& times = unicast_.times[size];
        schedule_.add(chunk, hop, ports_.route(), now_);
        rank_[chunk] -= static_cast<float>(urgency_ * static_cast<double>(times.duration[hop]));
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i)
            left_[hops_.steps.items[i]] -= times.holds[i].length;
        events_.start(now_, hop, size, chunk, hops_.single_links);
    }

    void on_release(std::int32_t bundle) {
        if (hops_.single_links)
            wake(bundle);
        else
            for (auto hop : hops_using_[bundle]) wake(hop);
    }
    void on_arrival(std::int32_t chunk) {
        const auto path = paths_[chunk];
        if (hops_.single_links) wake(path[position_[chunk]]);  // a link held until the arrival
        ++progress_.done;
        if (++position_[chunk] < path.size()) enqueue(chunk);
    }

    const HopTimes& times_of(std::int32_t chunk) const {
        return unicast_.times[unicast_.size[chunk]];
    }

    const Hops& hops_;
    const Unicast& unicast_;
    const Paths& paths_;
    Progress& progress_;
    Ports ports_;
    WaitingChunks waiting_;
    std::vector<std::uint32_t> position_;  // per chunk: hops taken
    std::vector<float> rank_;              // per chunk: the higher, the earlier it goes
    std::vector<std::uint8_t> is_ready_;
    std::vector<std::int32_t> ready_;
    HopEvents events_;
    Rows hops_using_;       // by bundle
    std::vector<ps> left_;  // per bundle: holds still to come
    double urgency_ = 0, levels_of_rank_ = 0;
    ps now_ = 0;
    Schedule schedule_;
};

}  // namespace

Schedule schedule_paths(const Hops& hops, const Unicast& unicast, const Paths& paths, ps load,
                        Precedence precedence, std::uint64_t seed, Progress& progress) {
    const auto run = [&]<class Ports>(std::type_identity<Ports>) {
        return PathScheduler<Ports>(hops, unicast, paths, load, precedence, seed, progress).run();
    };
    return hops.single_links ? run(std::type_identity<LinkPorts>())
                             : run(std::type_identity<RoutedPorts>());
}

}  // namespace weft
