#include "base/hops.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace weft {
namespace {

constexpr std::int64_t most_ways = 16;       // for a pair of NPUs
constexpr std::int64_t most_hops = 1 << 16;  // about so many in all: every pair has one at least

// Collects hops while walking from each NPU through the switches around it.
class HopFinder {
  public:
    HopFinder(const Network& net, std::int64_t least_buffer)
        : net_(net), least_buffer_(least_buffer), distance_(net.nodes(), -1), before_(net.nodes()),
          ways_(net.nodes()),
          ways_per_pair_(std::clamp<std::int64_t>(most_hops / net.npus / net.npus, 1, most_ways)) {}

    Hops find() {
        add_direct_links();
        if (net_.switches > 0) {
            hops_.single_links = false;  // even if no link is left that touches one
            bundle_links();
            for (std::int32_t npu = 0; npu < net_.npus; ++npu) walk_from(npu);
        }
        for (std::int32_t b = 0; b < hops_.bundles.size(); ++b)
            hops_.copied.push_back(net_.copies_at(net_.dst[hops_.bundles[b][0]]));
        hops_.multicast = std::count(hops_.copied.begin(), hops_.copied.end(), true) > 0;
        hops_.out = group_by(hops_.src, net_.npus);
        hops_.in = group_by(hops_.dst, net_.npus);
        return std::move(hops_);
    }

  private:
    struct Bundle {
        std::int32_t id, to;
    };

    void add_direct_links() {
        for (std::int32_t link = 0; link < net_.links(); ++link) {
            if (net_.is_switch(net_.src[link]) || net_.is_switch(net_.dst[link])) continue;
            hops_.bundles.items.push_back(link);
            hops_.bundles.close();
            hops_.steps.items.push_back(hops_.bundles.size() - 1);
            close_hop(net_.src[link], net_.dst[link]);
        }
    }

    void close_hop(std::int32_t src, std::int32_t dst) {
        hops_.steps.close();
        hops_.src.push_back(src);
        hops_.dst.push_back(dst);
    }

    void bundle_links() {
        std::vector<std::int32_t> links;
        for (std::int32_t link = 0; link < net_.links(); ++link)
            if ((net_.is_switch(net_.src[link]) || net_.is_switch(net_.dst[link])) &&
                net_.speed[link].buffer >= least_buffer_)
                links.push_back(link);
        auto key = [&](std::int32_t l) {
            return std::tuple(net_.src[l], net_.dst[l], net_.speed[l].bandwidth,
                              net_.speed[l].latency);
        };
        std::stable_sort(links.begin(), links.end(),
                         [&](auto a, auto b) { return key(a) < key(b); });
        bundles_from_.resize(net_.nodes());
        for (std::size_t i = 0; i < links.size();) {
            std::size_t end = i;
            while (end < links.size() && key(links[end]) == key(links[i]))
                hops_.bundles.items.push_back(links[end++]);
            hops_.bundles.close();
            bundles_from_[net_.src[links[i]]].push_back(
                {hops_.bundles.size() - 1, net_.dst[links[i]]});
            i = end;
        }
    }

    // Breadth first over switches only: other NPUs are where a hop ends.
    void walk_from(std::int32_t npu) {
        std::vector<std::int32_t> queue{npu}, ends;
        distance_[npu] = 0;
        for (std::size_t i = 0; i < queue.size(); ++i) {
            const auto node = queue[i];
            for (auto [bundle, to] : bundles_from_[node]) {
                if (distance_[to] < 0) {
                    distance_[to] = distance_[node] + 1;
                    (net_.is_switch(to) ? queue : ends).push_back(to);
                }
                if (distance_[to] == distance_[node] + 1) before_[to].push_back({bundle, node});
            }
        }
        std::sort(ends.begin(), ends.end());
        count_ways(npu, queue, ends);
        for (auto end : ends) add_paths(npu, end);
        for (auto* list : {&queue, &ends})
            for (auto node : *list) {
                distance_[node] = -1;
                before_[node].clear();
            }
    }

    // How many shortest ways lead to each node; `queue` is in order of distance.
    void count_ways(std::int32_t npu, const std::vector<std::int32_t>& queue,
                    const std::vector<std::int32_t>& ends) {
        constexpr std::uint64_t plenty = std::uint64_t{1} << 40;
        for (auto* list : {&queue, &ends})
            for (auto node : *list) {
                ways_[node] = node == npu;
                for (auto [bundle, from] : before_[node])
                    ways_[node] = std::min(ways_[node] + ways_[from], plenty);
            }
    }

    // All shortest ways to `end`, or some, spread evenly and shifted by the number of the end: so
    // all are used, and what goes to neighbours at one time goes different ways.
    void add_paths(std::int32_t npu, std::int32_t end) {
        const auto ways = ways_[end], taken = std::min<std::uint64_t>(ways, ways_per_pair_);
        const auto first = ways == taken ? 0 : static_cast<std::uint64_t>(end);
        for (std::uint64_t i = 0; i < taken; ++i)
            add_path(npu, end, (first + i * ways / taken) % ways);
    }

    // Way number `way` of those to `end`, counted in order of switch numbers.
    void add_path(std::int32_t npu, std::int32_t end, std::uint64_t way) {
        path_.clear();
        for (auto node = end; node != npu;)
            for (auto [bundle, from] : before_[node]) {
                if (way >= ways_[from]) {
                    way -= ways_[from];
                    continue;
                }
                path_.push_back(bundle);
                node = from;
                break;
            }
        hops_.steps.items.insert(hops_.steps.items.end(), path_.rbegin(), path_.rend());
        close_hop(npu, end);
    }

    const Network& net_;
    const std::int64_t least_buffer_;  // of a switch that can be crossed
    Hops hops_;
    std::vector<std::vector<Bundle>> bundles_from_;
    std::vector<std::int32_t> distance_;
    std::vector<std::vector<Bundle>> before_;  // shortest ways into a node: bundle, node before
    std::vector<std::uint64_t> ways_;          // shortest ways from the NPU to each node
    std::vector<std::int32_t> path_;
    const std::int64_t ways_per_pair_;
};

}  // namespace

Hops find_hops(const Network& network, CostModel cost, std::int64_t bytes) {
    return HopFinder(network, cost.store_and_forward ? bytes : 0).find();
}

bool everyone_meets(const Hops& hops) {
    const auto npus = static_cast<std::int64_t>(hops.out.size());
    if (hops.count() < npus * (npus - 1) || hops.single_links) return false;
    std::vector<std::int32_t> met(npus, -1);
    for (std::int32_t npu = 0; npu < npus; ++npu) {
        std::int64_t others = 0;
        for (auto hop : hops.out[npu])
            if (std::exchange(met[hops.dst[hop]], npu) != npu) ++others;
        if (others < npus - 1) return false;
    }
    return true;
}

HopTimes time_hops(const Network& network, const Hops& hops, CostModel cost, std::int64_t bytes) {
    HopTimes times;
    times.duration.resize(hops.count());
    times.holds.resize(hops.steps.items.size());
    std::vector<Speed> speeds;
    for (std::int32_t h = 0; h < hops.count(); ++h) {
        const auto steps = hops.steps[h];
        speeds.clear();
        for (auto bundle : steps) speeds.push_back(network.speed[hops.bundles[bundle][0]]);
        times.duration[h] =
            hop(cost, bytes, speeds, {times.holds.data() + hops.steps.offsets[h], steps.size()});
    }
    return times;
}

}  // namespace weft
