#include "bounds/hop_overheads.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace weft {
namespace {

// Best values spread from all NPUs through switches: `join` makes a node's value from that of the
// node before it and the link between them, `better` orders values, NPUs start with `initial`.
template <class Join, class Better>
std::vector<std::int64_t> through_switches(const Network& net, bool backwards, std::int64_t initial,
                                           std::int64_t worst, Join join, Better better) {
    std::vector<std::int64_t> value(net.nodes(), worst);
    std::fill(value.begin(), value.begin() + net.npus, initial);
    for (bool changed = true; changed;) {
        changed = false;
        for (std::int32_t link = 0; link < net.links(); ++link) {
            const auto from = backwards ? net.dst[link] : net.src[link];
            const auto to = backwards ? net.src[link] : net.dst[link];
            if (!net.is_switch(to) || value[from] == worst) continue;
            const auto joined = join(value[from], net.speed[link]);
            if (!better(joined, value[to])) continue;
            value[to] = joined;
            changed = true;
        }
    }
    return value;
}

}  // namespace

HopOverheads find_hop_overheads(const Network& net, CostModel cost) {
    const auto add = [](std::int64_t so_far, Speed link) { return so_far + link.latency; };
    const auto narrow = [](std::int64_t so_far, Speed link) {
        return std::min(so_far, link.bandwidth);
    };
    const auto latency_before = through_switches(net, false, 0, never, add, std::less<>{});
    const auto latency_after = through_switches(net, true, 0, never, add, std::less<>{});
    // The widest and the narrowest that a way from an NPU to each switch can be, and the narrowest
    // from there on.
    const auto widest = through_switches(net, false, never, -1, narrow, std::greater<>{});
    const auto narrowest = through_switches(net, false, never - 1, never, narrow, std::less<>{});
    const auto narrowest_on = through_switches(net, true, never - 1, never, narrow, std::less<>{});

    HopOverheads overheads;
    for (std::int32_t link = 0; link < net.links(); ++link) {
        const auto src = net.src[link], dst = net.dst[link];
        const auto bandwidth = net.speed[link].bandwidth;
        const auto latency = net.speed[link].latency;
        const bool behind_switch = net.is_switch(src) && !cost.store_and_forward;
        // Held from the hop's start if no link before is as slow as the slowest from here on.
        const bool maybe_early =
            behind_switch && widest[src] > std::min(bandwidth, narrowest_on[dst]);
        const bool maybe_late = behind_switch && narrowest[src] <= bandwidth;
        const ps held = cost.blocking ? latency : 0;
        const bool reached = latency_before[src] != never && latency_after[dst] != never;
        overheads.once.push_back(reached ? latency_before[src] + latency - held + latency_after[dst]
                                         : 0);
        overheads.across.push_back(maybe_early && maybe_late ? 0 : overheads.once.back());
        overheads.early.push_back(maybe_early || !behind_switch);
        overheads.late.push_back(maybe_late);
        overheads.steady.push_back(!maybe_early);
    }
    return overheads;
}

// A hop takes at least the sum of α and, cut-through, the time of its first link's bytes.
std::vector<ps> soonest(const Network& net, CostModel cost, std::int64_t bytes, std::int32_t from,
                        bool backwards, bool relays) {
    using Visit = std::pair<ps, std::int32_t>;
    const auto& next = backwards ? net.in : net.out;
    const auto& other_end = backwards ? net.src : net.dst;
    std::vector<ps> time(net.nodes(), never);
    std::priority_queue<Visit, std::vector<Visit>, std::greater<>> queue;
    time[from] = 0;
    queue.push({0, from});
    while (!queue.empty()) {
        const auto [now, node] = queue.top();
        queue.pop();
        if (now > time[node] || (!relays && !net.is_switch(node))) continue;
        for (auto link : next[node]) {
            ps taken = net.speed[link].latency;
            if (cost.store_and_forward || !net.is_switch(net.src[link]))
                taken += serialization(bytes, net.speed[link].bandwidth);
            const auto to = other_end[link];
            if (now + taken >= time[to]) continue;
            time[to] = now + taken;
            queue.push({time[to], to});
        }
    }
    return time;
}

}  // namespace weft
