#include "bounds/bound.h"

#include <algorithm>
#include <map>

#include "bounds/capacity.h"
#include "bounds/hop_overheads.h"

namespace weft {
namespace {

// What one NPU must take in (or give out).
struct Load {
    std::int64_t chunks = 0;
    std::int64_t bytes = 0;

    void add(Load other) {
        chunks += other.chunks;
        bytes += other.bytes;
    }
    void take_away(Load other) {
        chunks -= other.chunks;
        bytes -= other.bytes;
    }
};

bool contains(std::span<const std::int32_t> set, std::int32_t npu) {
    return std::binary_search(set.begin(), set.end(), npu);
}

bool only(std::span<const std::int32_t> set, std::int32_t npu) {
    return set.size() == 1 && set[0] == npu;
}

class NodeBounds {
  public:
    NodeBounds(const Network& network, CostModel cost, const ChunkClasses& classes)
        : net_(network), cost_(cost), classes_(classes),
          overheads_(find_hop_overheads(network, cost)),
          loads_(2 * static_cast<std::size_t>(network.npus)) {
        find_loads();
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
            budget -= net_.links() + net_.nodes();
            if (budget < 0 || best_.whole_chunks >= enough) break;
            consider_distances(side.npu, side.ingress);
        }
        return best_;
    }

  private:
    Load& load(std::int32_t npu, bool ingress) { return loads_[2 * npu + ingress]; }
    Load load_of(std::int32_t c) const { return {classes_.count[c], classes_.bytes[c]}; }
    std::int32_t count() const { return static_cast<std::int32_t>(classes_.pre.size()); }

    bool must_receive(std::int32_t c, std::int32_t npu) const {
        const auto pre = classes_.sets[classes_.pre[c]];
        return classes_.reduce[c] ? !only(pre, npu) : !contains(pre, npu);
    }
    bool must_send(std::int32_t c, std::int32_t npu) const {
        const auto post = classes_.sets[classes_.post[c]];
        return !only(post, npu) && may_send(c);
    }
    bool may_send(std::int32_t c) const {
        return classes_.reduce[c] || classes_.sets[classes_.pre[c]].size() == 1;
    }

    // The classes of each NPU would be a list for every two NPUs. So whole sets take in (or give
    // out) what there is for them, and then each NPU is given back what it need not.
    void find_loads() {
        std::vector<Load> into(classes_.sets.size()), out_of(classes_.sets.size());
        for (std::int32_t c = 0; c < count(); ++c) {
            into[classes_.post[c]].add(load_of(c));
            if (may_send(c)) out_of[classes_.pre[c]].add(load_of(c));
        }
        for (std::int32_t set = 0; set < classes_.sets.size(); ++set)
            for (auto npu : classes_.sets[set]) {
                load(npu, true).add(into[set]);
                load(npu, false).add(out_of[set]);
            }
        for (std::int32_t c = 0; c < count(); ++c) give_back(c);
    }

    void give_back(std::int32_t c) {
        const auto pre = classes_.sets[classes_.pre[c]], post = classes_.sets[classes_.post[c]];
        const auto& fewer = pre.size() < post.size() ? pre : post;
        const auto& more = pre.size() < post.size() ? post : pre;
        if (!classes_.reduce[c] || pre.size() == 1)
            for (auto npu : fewer)
                if (contains(more, npu)) load(npu, true).take_away(load_of(c));
        if (post.size() == 1 && may_send(c) && contains(pre, post[0]))
            load(post[0], false).take_away(load_of(c));
    }

    // The classes of one NPU's side.
    std::vector<std::int32_t> classes_of(std::int32_t npu, bool ingress) const {
        std::vector<bool> mine(classes_.sets.size());
        for (std::int32_t set = 0; set < classes_.sets.size(); ++set)
            mine[set] = contains(classes_.sets[set], npu);
        std::vector<std::int32_t> result;
        for (std::int32_t c = 0; c < count(); ++c)
            if (ingress ? mine[classes_.post[c]] && must_receive(c, npu)
                        : mine[classes_.pre[c]] && must_send(c, npu))
                result.push_back(c);
        return result;
    }

    // The links of an NPU's side as links for chunks of `bytes` from at least `away`.
    std::vector<LinkClass> link_classes(std::int32_t npu, bool ingress, std::int64_t bytes,
                                        ps away) const {
        const auto links = (ingress ? net_.in : net_.out)[npu];
        std::vector<LinkClass> result;
        result.reserve(links.size());
        for (auto link : links) {
            const auto bandwidth = net_.speed[link].bandwidth;
            const auto latency = net_.speed[link].latency;
            const ps held = serialization(bytes, bandwidth) + (cost_.blocking ? latency : 0);
            const ps opens = held + overheads_.once[link];
            ps first = held + overheads_.across[link];
            if (!ingress || overheads_.steady[link]) first = std::max(first, away);
            result.push_back({opens, first, held, cost_.blocking ? latency : 0, bandwidth});
        }
        return result;
    }

    void keep(ps whole, ps any, BoundKind kind, std::int32_t npu, std::int32_t other = -1) {
        best_.any_chunks = std::max(best_.any_chunks, any);
        if (whole <= best_.whole_chunks) return;
        best_.whole_chunks = whole;
        best_.kind = kind;
        best_.npu = npu;
        best_.other = other;
    }
    static BoundKind kind_of(bool ingress) {
        return ingress ? BoundKind::ingress : BoundKind::egress;
    }

    // Most NPUs of large networks look like some other: what these prove is looked up.
    ps consider_plain(std::int32_t npu, bool ingress) {
        const auto& side = load(npu, ingress);
        const auto fluid = link_classes(npu, ingress, 0, 0);
        std::vector<ps> key;
        key.reserve(3 + 4 * fluid.size());
        key.insert(key.end(), {ingress, side.chunks, side.bytes});
        for (const auto& link_class : fluid)
            key.insert(key.end(),
                       {link_class.opens, link_class.first, link_class.gap, link_class.bandwidth});
        const auto [known, fresh] = plain_.try_emplace(std::move(key), 0);
        if (!fresh) return known->second;
        const ps any = time_for_bytes(fluid, static_cast<double>(side.bytes));
        const ps counted =
            time_for_chunks(link_classes(npu, ingress, classes_.smallest, 0), crossing(side));
        const ps whole = std::max({any, counted, exact_bytes(side, fluid)});
        keep(whole, any, kind_of(ingress), npu);
        return known->second = whole;
    }

    Crossing crossing(const Load& side) const {
        return {side.chunks, static_cast<double>(side.bytes), classes_.largest};
    }

    // Chunks differ by some bytes where sizes do not divide, and the count above takes them all
    // for the smallest. Here every byte counts, and with each chunk the α that holds its link
    // (`gap` of the fluid links; 0 if α does not block), on the link where that costs least.
    static ps exact_bytes(const Load& side, std::vector<LinkClass> fluid) {
        double overhead = fluid.empty() ? 0 : 1e300;
        for (auto& link_class : fluid) {
            overhead = std::min(overhead, static_cast<double>(link_class.gap) * 1e-12 *
                                              static_cast<double>(link_class.bandwidth));
            link_class.first -= link_class.gap;
        }
        return time_for_bytes(
            fluid, static_cast<double>(side.bytes) + overhead * static_cast<double>(side.chunks));
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
        const auto mine = classes_of(npu, ingress);
        const auto away = soonest(net_, cost_, classes_.smallest, npu, ingress);
        const auto rings = rings_around(npu, ingress, away, mine);
        const ps path = rings.front().first;
        const auto other = static_cast<std::int32_t>(
            std::find(away.begin(), away.begin() + net_.npus, path) - away.begin());
        if (path == never) return keep(never, never, BoundKind::path, npu, other);
        ps whole = 0, any = 0;
        const auto nearest = soonest(net_, cost_, 0, npu, ingress);
        for_some(rings, [&](ps distance, const Load& rest) {
            const auto at = link_classes(npu, ingress, classes_.smallest, distance);
            whole = std::max({whole, distance, time_for_chunks(at, crossing(rest))});
        });
        for_some(rings_around(npu, ingress, nearest, mine), [&](ps distance, const Load& rest) {
            const auto at = link_classes(npu, ingress, 0, distance);
            any = std::max({any, distance, time_for_bytes(at, static_cast<double>(rest.bytes))});
        });
        keep(path, any, BoundKind::path, npu, other);
        keep(std::max(whole, any), any, kind_of(ingress), npu);
    }

    // (R, what comes from at least R away), for every distance R, from the farthest inwards.
    using Rings = std::vector<std::pair<ps, Load>>;
    Rings rings_around(std::int32_t npu, bool ingress, const std::vector<ps>& away,
                       std::span<const std::int32_t> classes) const {
        std::vector<std::pair<ps, std::int32_t>> order;
        for (auto c : classes) order.emplace_back(travel(c, npu, ingress, away), c);
        std::sort(order.rbegin(), order.rend());
        Rings rings;
        Load sum;
        for (const auto& [distance, c] : order) {
            sum.add(load_of(c));
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
    const CostModel cost_;
    const ChunkClasses& classes_;
    const HopOverheads overheads_;
    std::vector<Load> loads_;
    std::map<std::vector<ps>, ps> plain_;  // by what a side has to move, and its links
    NodeBound best_;
};

}  // namespace

NodeBound node_bound(const Network& network, CostModel cost, const ChunkClasses& classes, ps enough,
                     std::int64_t budget) {
    return NodeBounds(network, cost, classes).strongest(enough, budget);
}

}  // namespace weft
