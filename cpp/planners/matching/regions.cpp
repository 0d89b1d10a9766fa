#include "planners/matching/regions.h"

#include <algorithm>
#include <numeric>

#include "bounds/cuts.h"

namespace weft {
namespace {

// How long a hop holds its slowest link: the inverse of its speed.
std::vector<ps> slowness(const Hops& hops, const HopTimes& times) {
    std::vector<ps> result(hops.count(), 0);
    for (std::int32_t h = 0; h < hops.count(); ++h)
        for (auto i = hops.steps.offsets[h]; i < hops.steps.offsets[h + 1]; ++i)
            result[h] = std::max(result[h], times.holds[i].length);
    return result;
}

std::int32_t root(std::vector<std::int32_t>& parent, std::int32_t npu) {
    while (parent[npu] != npu) npu = parent[npu] = parent[parent[npu]];
    return npu;
}

Regions joined_by(const Hops& hops, const std::vector<ps>& slow, ps slowest) {
    std::vector<std::int32_t> parent(hops.out.size());
    std::iota(parent.begin(), parent.end(), 0);
    for (std::int32_t h = 0; h < hops.count(); ++h)
        if (slow[h] <= slowest) parent[root(parent, hops.src[h])] = root(parent, hops.dst[h]);
    Regions regions{std::vector<std::int32_t>(parent.size()), std::vector<bool>(hops.count())};
    std::vector<std::int32_t> number(parent.size(), -1);
    std::int32_t count = 0;
    for (std::int32_t npu = 0; npu < hops.out.size(); ++npu) {
        auto& known = number[root(parent, npu)];
        if (known < 0) known = count++;
        regions.of[npu] = known;
    }
    for (std::int32_t h = 0; h < hops.count(); ++h) regions.crossed_by[h] = slow[h] > slowest;
    return regions;
}

}  // namespace

std::int32_t Regions::count() const { return 1 + *std::max_element(of.begin(), of.end()); }

bool is_joined(const Hops& hops, std::span<const std::int32_t> npus) {
    std::vector<bool> inside(hops.out.size(), false);
    for (auto npu : npus) inside[npu] = true;
    auto reaches_all = [&](const Rows& next, const std::vector<std::int32_t>& end) {
        std::vector<bool> seen(hops.out.size(), false);
        std::vector<std::int32_t> queue{npus.front()};
        seen[npus.front()] = true;
        for (std::size_t i = 0; i < queue.size(); ++i)
            for (auto hop : next[queue[i]]) {
                const auto npu = end[hop];
                if (!inside[npu] || seen[npu]) continue;
                seen[npu] = true;
                queue.push_back(npu);
            }
        return queue.size() == npus.size();
    };
    return npus.empty() || (reaches_all(hops.out, hops.dst) && reaches_all(hops.in, hops.src));
}

std::vector<Regions> regions_by_speed(const Hops& hops, const HopTimes& times) {
    const auto slow = slowness(hops, times);
    auto levels = slow;
    std::sort(levels.begin(), levels.end());
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    std::vector<Regions> divisions;
    for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
        if (levels[i + 1] < levels[i] + levels[i] / 2) continue;
        auto regions = joined_by(hops, slow, levels[i]);
        if (regions.count() > 1 && regions.count() < hops.out.size())
            divisions.push_back(std::move(regions));
    }
    std::reverse(divisions.begin(), divisions.end());
    return divisions;
}

std::vector<Regions> regions_by_cut(const Network& network, const Hops& hops,
                                    const std::vector<double>& supply_bytes,
                                    const std::vector<std::int32_t>& takers, double known) {
    constexpr std::int64_t budget = 20'000'000;
    std::vector<double> supply(network.nodes(), 0);
    std::copy(supply_bytes.begin(), supply_bytes.end(), supply.begin());
    const auto cut = tightest_cut(network, supply, takers, known, budget);
    if (cut.inside.empty()) return {};
    Regions regions;
    for (std::int32_t npu = 0; npu < network.npus; ++npu) regions.of.push_back(cut.inside[npu]);
    for (std::int32_t h = 0; h < hops.count(); ++h)
        regions.crossed_by.push_back(regions.of[hops.src[h]] != regions.of[hops.dst[h]]);
    return {regions};
}

}  // namespace weft
