#include "bound.h"

#include <algorithm>
#include <queue>

#include "capacity.h"

namespace weft {
namespace {

// What one NPU must take in (or give out): how many chunks and bytes of each class.
struct Load {
    std::vector<std::int32_t> classes;
    std::int64_t chunks = 0;
    std::int64_t bytes = 0;
};

bool contains(std::span<const std::int32_t> set, std::int32_t npu) {
    return std::binary_search(set.begin(), set.end(), npu);
}

bool only(std::span<const std::int32_t> set, std::int32_t npu) {
    return set.size() == 1 && set[0] == npu;
}

class NodeBounds {
  public:
    NodeBounds(const Network& network, const Hops& hops, const HopTimes& times,
               const HopTimes& latencies, const ChunkClasses& classes)
        : net_(network), hops_(hops), times_(times), latencies_(latencies), classes_(classes),
          loads_(2 * static_cast<std::size_t>(network.npus)) {
        for (std::int32_t c = 0; c < static_cast<std::int32_t>(classes.pre.size()); ++c) {
            for (auto npu : classes.sets[classes.post[c]])
                if (must_receive(c, npu)) add(load(npu, true), c);
            for (auto npu : classes.sets[classes.pre[c]])
                if (must_send(c, npu)) add(load(npu, false), c);
        }
    }

    NodeBound strongest(ps enough, std::int64_t budget) {
        struct Side {
            ps plain;
            std::int32_t npu;
            bool ingress;
        };
        std::vector<Side> sides;
        for (std::int32_t npu = 0; npu < net_.npus; ++npu)
            for (bool ingress : {true, false})
                if (load(npu, ingress).chunks > 0)
                    sides.push_back({consider_plain(npu, ingress), npu, ingress});
        std::stable_sort(sides.begin(), sides.end(),
                         [](const auto& a, const auto& b) { return a.plain > b.plain; });
        for (const auto& side : sides) {
            budget -= hops_.count() + net_.npus;
            if (budget < 0 || best_.whole_chunks >= enough) break;
            consider_distances(side.npu, side.ingress);
        }
        return best_;
    }

  private:
    Load& load(std::int32_t npu, bool ingress) { return loads_[2 * npu + ingress]; }

    bool must_receive(std::int32_t c, std::int32_t npu) const {
        const auto pre = classes_.sets[classes_.pre[c]];
        return classes_.reduce[c] ? !only(pre, npu) : !contains(pre, npu);
    }
    bool must_send(std::int32_t c, std::int32_t npu) const {
        const auto pre = classes_.sets[classes_.pre[c]], post = classes_.sets[classes_.post[c]];
        return !only(post, npu) && (classes_.reduce[c] || pre.size() == 1);
    }
    void add(Load& to, std::int32_t c) {
        to.classes.push_back(c);
        to.chunks += classes_.count[c];
        to.bytes += classes_.bytes[c];
    }

    // The links of an NPU's side as gates for what is at least `away` from it.
    std::vector<Gate> gates(std::int32_t npu, bool ingress, const HopTimes& times, ps away) const {
        struct Port {
            std::int32_t bundle;
            ps shortest, longest, held;
        };
        std::vector<Port> ports;
        for (auto hop : (ingress ? hops_.in : hops_.out)[npu]) {
            const auto step = ingress ? hops_.steps.offsets[hop + 1] - 1 : hops_.steps.offsets[hop];
            const auto bundle = hops_.steps.items[step];
            const ps duration = times.duration[hop], held = times.holds[step].length;
            auto port = std::find_if(ports.begin(), ports.end(),
                                     [&](const auto& p) { return p.bundle == bundle; });
            if (port == ports.end()) {
                ports.push_back({bundle, duration, duration, held});
            } else {
                port->shortest = std::min(port->shortest, duration);
                port->longest = std::max(port->longest, duration);
            }
        }
        std::vector<Gate> result;
        for (const auto& port : ports) {
            const auto links = hops_.bundles[port.bundle];
            // Arrivals over one link may come closer than its holds where hops differ in length.
            const ps slack = ingress ? port.longest - port.shortest : 0;
            result.push_back({std::max(port.shortest, away - slack), port.held,
                              net_.speed[links[0]].bandwidth,
                              static_cast<std::int64_t>(links.size())});
        }
        return result;
    }

    void keep(ps whole, ps any, std::int32_t npu, BoundKind kind) {
        best_.any_chunks = std::max(best_.any_chunks, any);
        if (whole <= best_.whole_chunks) return;
        best_.whole_chunks = whole;
        best_.npu = npu;
        best_.kind = kind;
    }
    static BoundKind kind_of(bool ingress) {
        return ingress ? BoundKind::ingress : BoundKind::egress;
    }

    ps consider_plain(std::int32_t npu, bool ingress) {
        const auto& side = load(npu, ingress);
        const auto fluid = gates(npu, ingress, latencies_, 0);
        const ps any = time_for_bytes(fluid, static_cast<double>(side.bytes));
        const ps counted = time_for_chunks(gates(npu, ingress, times_, 0), side.chunks);
        const ps whole = std::max({any, counted, exact_bytes(side, fluid)});
        keep(whole, any, npu, kind_of(ingress));
        return whole;
    }

    // Chunks differ by some bytes where sizes do not divide, and the count above takes them all
    // for the smallest. Here every byte counts, and with each chunk the α that holds its link
    // (`gap` of the fluid gates; 0 if α does not block), on the link where that costs least.
    static ps exact_bytes(const Load& side, std::vector<Gate> fluid) {
        double overhead = fluid.empty() ? 0 : 1e300;
        for (auto& gate : fluid) {
            overhead = std::min(overhead, static_cast<double>(gate.gap) * 1e-12 *
                                              static_cast<double>(gate.bandwidth));
            gate.first -= gate.gap;
        }
        return time_for_bytes(fluid, static_cast<double>(side.bytes) +
                                         overhead * static_cast<double>(side.chunks));
    }

    // How long a chunk of class `c` travels at least between this NPU and its far end.
    ps travel(std::int32_t c, std::int32_t npu, bool ingress, const std::vector<ps>& away) const {
        const bool farthest = !ingress || classes_.reduce[c];
        ps result = farthest ? 0 : never;
        for (auto other : classes_.sets[ingress ? classes_.pre[c] : classes_.post[c]])
            if (other != npu)
                result = farthest ? std::max(result, away[other]) : std::min(result, away[other]);
        return result;
    }

    void consider_distances(std::int32_t npu, bool ingress) {
        const auto rings = rings_around(npu, ingress, times_);
        const ps path = rings.front().first;
        if (path == never) return keep(never, never, npu, BoundKind::path);
        ps whole = 0, any = 0;
        for_some(rings, [&](ps away, const Load& rest) {
            const auto at = gates(npu, ingress, times_, away);
            whole = std::max(whole, time_for_chunks(at, rest.chunks));
        });
        for_some(rings_around(npu, ingress, latencies_), [&](ps away, const Load& rest) {
            const auto at = gates(npu, ingress, latencies_, away);
            any = std::max({any, away, time_for_bytes(at, static_cast<double>(rest.bytes))});
        });
        keep(std::max(whole, any), any, npu, kind_of(ingress));
        keep(path, any, npu, BoundKind::path);
    }

    // (R, what comes from at least R away), for every distance R, from the farthest inwards.
    using Rings = std::vector<std::pair<ps, Load>>;
    Rings rings_around(std::int32_t npu, bool ingress, const HopTimes& times) {
        const auto away = earliest(hops_, times.duration, npu, ingress);
        std::vector<std::pair<ps, std::int32_t>> order;
        for (auto c : load(npu, ingress).classes)
            order.emplace_back(travel(c, npu, ingress, away), c);
        std::sort(order.rbegin(), order.rend());
        Rings rings;
        Load sum;
        for (const auto& [distance, c] : order) {
            sum.chunks += classes_.count[c];
            sum.bytes += classes_.bytes[c];
            if (rings.empty() || rings.back().first != distance) rings.push_back({distance, {}});
            rings.back().second = sum;
        }
        return rings;
    }

    // Where there are many distances, some tens of them must do.
    template <class Handle>
    static void for_some(const Rings& rings, Handle handle) {
        constexpr std::size_t most = 64;
        for (std::size_t i = 0; i < rings.size(); i += (rings.size() + most - 1) / most)
            handle(rings[i].first, rings[i].second);
    }

    const Network& net_;
    const Hops& hops_;
    const HopTimes& times_;
    const HopTimes& latencies_;
    const ChunkClasses& classes_;
    std::vector<Load> loads_;
    NodeBound best_;
};

}  // namespace

NodeBound node_bound(const Network& network, const Hops& hops, const HopTimes& times,
                     const HopTimes& latencies, const ChunkClasses& classes, ps enough,
                     std::int64_t budget) {
    return NodeBounds(network, hops, times, latencies, classes).strongest(enough, budget);
}

std::vector<ps> earliest(const Hops& hops, const std::vector<ps>& duration, std::int32_t from,
                         bool backwards) {
    using Visit = std::pair<ps, std::int32_t>;
    const auto& next = backwards ? hops.in : hops.out;
    const auto& other_end = backwards ? hops.src : hops.dst;
    std::vector<ps> time(next.size(), never);
    std::priority_queue<Visit, std::vector<Visit>, std::greater<>> queue;
    time[from] = 0;
    queue.push({0, from});
    while (!queue.empty()) {
        const auto [now, npu] = queue.top();
        queue.pop();
        if (now > time[npu]) continue;
        for (auto hop : next[npu]) {
            const auto to = other_end[hop];
            if (now + duration[hop] >= time[to]) continue;
            time[to] = now + duration[hop];
            queue.push({time[to], to});
        }
    }
    return time;
}

}  // namespace weft
