// Choice: which NPU sums a chunk, and through which NPUs each box sends and receives it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/hops.h"
#include "planners/trees/packing.h"

namespace weft {

// Members of a group in boxes; hops inside boxes and between them.
class Boxes {
  public:
    // `box`: by NPU; -1 for those that do not take part.
    Boxes(const Hops& hops, std::span<const std::int32_t> box)
        : of_(box.begin(), box.end()), inside_out(hops.out.size()), inside_in(hops.out.size()),
          across(hops.count()) {
        std::int32_t count = 0;
        for (auto number : box) count = std::max(count, number + 1);
        members.resize(count);
        place_.resize(box.size());
        for (std::int32_t npu = 0; npu < static_cast<std::int32_t>(box.size()); ++npu)
            if (box[npu] >= 0) {
                place_[npu] = static_cast<std::int32_t>(members[box[npu]].size());
                members[box[npu]].push_back(npu);
            }
        across.clear();
        for (std::int32_t hop = 0; hop < hops.count(); ++hop) {
            const auto from = hops.src[hop], to = hops.dst[hop];
            if (is_across(from, to)) across.push_back(hop);
            if (of_[from] < 0 || of_[from] != of_[to]) continue;
            inside_out[from].push_back(hop);
            inside_in[to].push_back(hop);
        }
    }

    std::int32_t count() const { return static_cast<std::int32_t>(members.size()); }
    std::int32_t operator[](std::int32_t npu) const { return of_[npu]; }
    std::int32_t place(std::int32_t npu) const { return place_[npu]; }
    bool is_across(std::int32_t from, std::int32_t to) const {
        return of_[from] >= 0 && of_[to] >= 0 && of_[from] != of_[to];
    }

  private:
    std::vector<std::int32_t> of_, place_;

  public:
    std::vector<std::vector<std::int32_t>> members;                // by box
    std::vector<std::vector<std::int32_t>> inside_out, inside_in;  // hops by NPU
    std::vector<std::int32_t> across;                              // hops between boxes
};

// How a chunk goes in one shot: every box has two gateways. All of the box is summed at both; one
// sends the sum to the other boxes, the other adds theirs and spreads the result.
struct Shot {
    struct Box {
        std::int32_t sender, receiver;
        std::vector<std::int32_t> to_sender, to_receiver, spread;  // from the gateway outwards
    };
    std::vector<Box> boxes;
    std::vector<std::int32_t> across;  // hops from each sender to each other receiver
};

// Chooses for one chunk after the other, under prices that rise with the load of links.
class GatewayChooser {
  public:
    GatewayChooser(const Hops& hops, const HopTimes& times, const Boxes& boxes, double depth_price)
        : hops_(hops), times_(times), boxes_(boxes), depth_price_(depth_price),
          held_(hops.bundles.size(), 0), load_(hops.bundles.size(), 0),
          price_(hops.bundles.size(), 0), up_(hops.out.size()), down_(hops.out.size()),
          ports_in_(hops.out.size()), ports_out_(hops.out.size()) {
        const auto note = [](auto& ports, auto port) {
            if (std::find(ports.begin(), ports.end(), port) == ports.end()) ports.push_back(port);
        };
        for (auto hop : boxes.across) {
            note(ports_out_[hops.src[hop]], hops.steps[hop].front());
            note(ports_in_[hops.dst[hop]], hops.steps[hop].back());
        }
        for (std::size_t i = 0; i < times.holds.size(); ++i)
            held_[hops.steps.items[i]] = static_cast<double>(times.holds[i].length);
        quickest_ = static_cast<double>(
            std::max<ps>(1, *std::min_element(times.duration.begin(), times.duration.end())));
    }

    // Whether only some owners are looked at, among many NPUs.
    bool is_large() const {
        std::size_t members = 0;
        for (const auto& box : boxes_.members) members += box.size();
        return members > all_owners;
    }

    // What counts as full, for the prices that follow: the load of one link.
    void set_full(double full) {
        full_ = std::max(full, 1.0);
        for (std::int32_t b = 0; b < hops_.bundles.size(); ++b) set_price(b);
    }
    double busiest() const {
        double most = 0;
        for (std::int32_t b = 0; b < hops_.bundles.size(); ++b) most = std::max(most, load(b));
        return most;
    }
    double busiest(const std::vector<std::int32_t>& tree) const {
        double most = 0;
        for (auto hop : tree)
            for (auto bundle : hops_.steps[hop]) most = std::max(most, load(bundle));
        return most;
    }
    void put(const std::vector<std::int32_t>& tree, double times) {
        for (auto hop : tree)
            for (auto bundle : hops_.steps[hop]) {
                load_[bundle] += times * held_[bundle];
                set_price(bundle);
            }
    }

    // The cheapest owner with the cheapest gateways; without hops if boxes do not all meet.
    Tree choose() {
        grow_all(true);
        std::int32_t best = -1;
        double least = far;
        for (auto root : candidates()) {
            find_ways(boxes_[root], true);
            if (const double cost = total(root); cost < least) least = cost, best = root;
        }
        return best < 0 ? Tree{} : made(best, true);
    }

    // The cheapest gateways of what one NPU has for all.
    Tree choose(std::int32_t root) {
        grow_all(false);
        find_ways(boxes_[root], false);
        for (std::int32_t box = 0; box < boxes_.count(); ++box)
            if (box != boxes_[root] && way(root, box, false).hop < 0) return {};
        return down_[root].cost < far ? made(root, false) : Tree{};
    }

    // The cheapest pair of gateways of every box, one box after the other, twice.
    Shot choose_shot() {
        grow_all(true);
        Shot shot;
        shot.boxes.assign(boxes_.count(), {-1, -1, {}, {}, {}});
        // The cheapest hop between two NPUs.
        pair_.assign(hops_.out.size() * hops_.out.size(), -1);
        for (auto hop : boxes_.across) {
            auto& known = pair(hops_.src[hop], hops_.dst[hop]);
            if (known < 0 || price(hop) < price(known)) known = hop;
        }
        for (int sweep = 0; sweep < 2; ++sweep)
            for (std::int32_t box = 0; box < boxes_.count(); ++box)
                if (!choose_gateways(shot, box, sweep > 0)) return {};
        for (auto& box : shot.boxes) {
            box.to_sender = up_[box.sender].hops;
            box.to_receiver = up_[box.receiver].hops;
            box.spread = down_[box.receiver].hops;
            for (const auto& other : shot.boxes)
                if (&other != &box) shot.across.push_back(pair(box.sender, other.receiver));
        }
        return shot;
    }

  private:
    static constexpr double far = 1e300;
    static constexpr double floor_price = 0.01;  // of an idle link
    // How many owners are looked at: all, or of many those that look cheapest.
    static constexpr std::size_t all_owners = 64, some_owners = 4;

    // A tree inside a box; hops from the root outwards.
    struct Grown {
        double cost = far;
        std::vector<std::int32_t> hops;
        std::vector<double> depth;  // by place in the box
    };
    // The cheapest way from or to another box.
    struct Way {
        double cost = far;
        std::int32_t hop = -1;
    };

    double load(std::int32_t bundle) const {
        return load_[bundle] / static_cast<double>(hops_.bundles[bundle].size());
    }
    void set_price(std::int32_t bundle) {
        const auto links = static_cast<double>(hops_.bundles[bundle].size());
        const double filled = (load_[bundle] + held_[bundle]) / (full_ * links);
        const double cube = filled * filled * filled;
        price_[bundle] = held_[bundle] / quickest_ * (floor_price + cube * cube);
    }
    double length(std::int32_t hop) const {
        return depth_price_ * static_cast<double>(times_.duration[hop]) / quickest_;
    }
    double price(std::int32_t hop) const {
        double sum = length(hop);
        for (auto bundle : hops_.steps[hop]) sum += price_[bundle];
        return sum;
    }

    void grow_all(bool inward) {
        has_ways_.assign(boxes_.count(), false);
        for (const auto& box : boxes_.members)
            for (auto root : box) {
                if (inward) grow(root, box, true, up_[root]);
                grow(root, box, false, down_[root]);
            }
    }

    // Who may own a chunk: all, or those whose box and whose own ways to another box cost least.
    std::vector<std::int32_t> candidates() const {
        std::vector<std::pair<double, std::int32_t>> found;
        for (const auto& box : boxes_.members)
            for (auto npu : box) found.push_back({0, npu});
        if (is_large()) {
            for (auto& [cost, npu] : found) cost = rank(npu);
            std::nth_element(found.begin(), found.begin() + some_owners, found.end());
            found.resize(some_owners);
            std::sort(found.begin(), found.end());
        }
        std::vector<std::int32_t> npus;
        for (const auto& [cost, npu] : found) npus.push_back(npu);
        return npus;
    }
    // What it costs to own a chunk: its box, and its own ports for what comes from other boxes.
    double rank(std::int32_t npu) const {
        double in = far, out = far;
        for (auto port : ports_in_[npu]) in = std::min(in, price_[port]);
        for (auto port : ports_out_[npu]) out = std::min(out, price_[port]);
        return up_[npu].cost + down_[npu].cost + (in + out) * (boxes_.count() - 1);
    }

    // Whoever is one hop from the root needs nobody between; others are joined in Prim's way.
    void grow(std::int32_t root, const std::vector<std::int32_t>& box, bool inward, Grown& grown) {
        const auto& next = inward ? boxes_.inside_in : boxes_.inside_out;
        const auto& outer = inward ? hops_.src : hops_.dst;
        auto& [cost, tree, depth] = grown;
        cost = 0;
        tree.clear();
        depth.assign(box.size(), 0);
        least_.assign(box.size(), far);
        by_.assign(box.size(), -1);
        for (auto hop : next[root]) {
            const auto there = boxes_.place(outer[hop]);
            if (const double key = price(hop); key < least_[there])
                least_[there] = key, by_[there] = hop;
        }
        double deepest = 0;
        for (std::size_t i = 0; i < box.size(); ++i)
            if (by_[i] >= 0) {
                tree.push_back(by_[i]);
                depth[i] = length(by_[i]);
                cost += least_[i] - depth[i];
                deepest = std::max(deepest, depth[i]);
            }
        cost += deepest;
        if (tree.size() + 1 < box.size()) grown = prim(root, box, inward);
    }

    // The cheapest hop that joins another NPU of the box, until all are in.
    Grown prim(std::int32_t root, const std::vector<std::int32_t>& box, bool inward) const {
        const auto& next = inward ? boxes_.inside_in : boxes_.inside_out;
        const auto& outer = inward ? hops_.src : hops_.dst;
        Grown grown{0, {}, std::vector<double>(box.size(), 0)};
        std::vector<double> least(box.size(), far);
        std::vector<std::int32_t> by(box.size(), -1);
        std::vector<bool> joined(box.size(), false);
        auto npu = root;
        double deepest = 0;
        for (;;) {
            const auto here = boxes_.place(npu);
            joined[here] = true;
            deepest = std::max(deepest, grown.depth[here]);
            for (auto hop : next[npu]) {
                const auto there = boxes_.place(outer[hop]);
                const double key = price(hop) + grown.depth[here];
                if (!joined[there] && key < least[there]) least[there] = key, by[there] = hop;
            }
            std::int32_t best = -1;
            for (std::size_t i = 0; i < box.size(); ++i)
                if (!joined[i] && by[i] >= 0 && (best < 0 || least[i] < least[best]))
                    best = static_cast<std::int32_t>(i);
            if (best < 0) break;
            const auto hop = by[best];
            const auto inner = inward ? hops_.dst[hop] : hops_.src[hop];
            grown.depth[best] = grown.depth[boxes_.place(inner)] + length(hop);
            grown.cost += price(hop) - length(hop);
            grown.hops.push_back(hop);
            npu = box[best];
        }
        grown.cost += deepest;
        if (grown.hops.size() + 1 < box.size()) grown.cost = far;
        return grown;
    }

    // By NPU of a box and other box: the cheapest way for the other box's sum to come here, and
    // for the result to get there from here.
    void find_ways(std::int32_t box, bool inward) {
        if (has_ways_[box]) return;
        has_ways_[box] = true;
        const auto count = static_cast<std::size_t>(boxes_.count());
        come_.resize(hops_.out.size() * count);
        go_.resize(hops_.out.size() * count);
        const auto keep = [](Way& known, double cost, std::int32_t hop) {
            if (cost < known.cost) known = {cost, hop};
        };
        for (auto npu : boxes_.members[box]) {
            std::fill_n(&come_[npu * count], count, Way{});
            std::fill_n(&go_[npu * count], count, Way{});
            for (auto hop : hops_.out[npu])
                if (const auto to = hops_.dst[hop]; boxes_.is_across(npu, to))
                    keep(go_[npu * count + boxes_[to]], price(hop) + down_[to].cost, hop);
            if (!inward) continue;
            for (auto hop : hops_.in[npu])
                if (const auto from = hops_.src[hop]; boxes_.is_across(from, npu))
                    keep(come_[npu * count + boxes_[from]], price(hop) + up_[from].cost, hop);
        }
    }

    // The cheapest way between a root's box and another one, under the present load of what it
    // crosses; deeper in the box costs more.
    Way way(std::int32_t root, std::int32_t other, bool inward) const {
        const auto& ways = inward ? come_ : go_;
        const auto& depth = (inward ? up_ : down_)[root].depth;
        Way best;
        for (auto npu : boxes_.members[boxes_[root]]) {
            const auto& known = ways[npu * boxes_.count() + other];
            if (known.hop < 0) continue;
            const auto& there = inward ? up_[hops_.src[known.hop]] : down_[hops_.dst[known.hop]];
            const double cost = price(known.hop) + there.cost + depth[boxes_.place(npu)];
            if (cost < best.cost) best = {cost, known.hop};
        }
        return best;
    }
    double total(std::int32_t root) const {
        double sum = up_[root].cost + down_[root].cost;
        for (std::int32_t box = 0; box < boxes_.count(); ++box)
            if (box != boxes_[root]) sum += way(root, box, true).cost + way(root, box, false).cost;
        return sum;
    }
    Tree made(std::int32_t root, bool inward) {
        Tree tree{inward ? up_[root].hops : std::vector<std::int32_t>{}, down_[root].hops};
        std::vector<std::int32_t> across;
        const auto join = [&](auto& hops, auto hop, const Grown& there) {
            hops.push_back(hop);
            hops.insert(hops.end(), there.hops.begin(), there.hops.end());
            // An owner who is given may have many ways to take in turn; others have good ones.
            if (inward) return;
            across.push_back(hop);
            put({hop}, +1);
        };
        for (std::int32_t box = 0; box < boxes_.count(); ++box) {
            if (box == boxes_[root]) continue;
            const auto go = way(root, box, false).hop;
            join(tree.down, go, down_[hops_.dst[go]]);
            if (!inward) continue;
            const auto come = way(root, box, true).hop;
            join(tree.up, come, up_[hops_.src[come]]);
        }
        put(across, -1);
        return tree;
    }

    std::int32_t& pair(std::int32_t from, std::int32_t to) {
        return pair_[from * hops_.out.size() + to];
    }
    // `all`: the gateways of all other boxes are known; else only those of the boxes before it.
    bool choose_gateways(Shot& shot, std::int32_t box, bool all) {
        double least_out = far, least_in = far;
        auto& own = shot.boxes[box];
        own.sender = own.receiver = -1;
        for (auto npu : boxes_.members[box]) {
            double out = up_[npu].cost, in = up_[npu].cost + down_[npu].cost;
            for (std::int32_t other = 0; other < boxes_.count(); ++other) {
                if (other == box) continue;
                const auto& there = shot.boxes[other];
                const bool known = all || other < box;
                out += cheapest(npu, other, known ? there.receiver : -1, true);
                in += cheapest(npu, other, known ? there.sender : -1, false);
            }
            if (out < least_out) least_out = out, own.sender = npu;
            if (in < least_in) least_in = in, own.receiver = npu;
        }
        return own.sender >= 0 && own.receiver >= 0;
    }
    // Of the hops from (or to) an NPU to (or from) one of another box, or any of it if that is -1.
    double cheapest(std::int32_t npu, std::int32_t other, std::int32_t there, bool outward) {
        double least = far;
        for (auto one : boxes_.members[other]) {
            if (there >= 0 && one != there) continue;
            const auto hop = outward ? pair(npu, one) : pair(one, npu);
            if (hop >= 0) least = std::min(least, price(hop));
        }
        return least;
    }

    const Hops& hops_;
    const HopTimes& times_;
    const Boxes& boxes_;
    const double depth_price_;   // of the shortest hop
    std::vector<double> held_;   // per bundle: time one chunk holds one of its links
    std::vector<double> load_;   // per bundle: time its links are held in all
    std::vector<double> price_;  // per bundle, under the present load
    double quickest_, full_ = 1;
    // By NPU: its own bundles that hops between boxes cross.
    std::vector<std::vector<std::int32_t>> ports_in_, ports_out_;
    std::vector<Grown> up_, down_;  // by root
    std::vector<Way> come_, go_;    // by NPU and box
    std::vector<bool> has_ways_;    // by box: whether those of its NPUs are known
    std::vector<std::int32_t> pair_, by_;
    std::vector<double> least_;
};

}  // namespace weft
