// Choice: which NPU sums a chunk, and through which NPUs each box sends and receives it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
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
            const auto from = of_[hops.src[hop]], to = of_[hops.dst[hop]];
            if (from < 0 || to < 0) continue;
            if (from == to) {
                inside_out[hops.src[hop]].push_back(hop);
                inside_in[hops.dst[hop]].push_back(hop);
            } else {
                across.push_back(hop);
            }
        }
    }

    std::int32_t count() const { return static_cast<std::int32_t>(members.size()); }
    std::int32_t operator[](std::int32_t npu) const { return of_[npu]; }
    std::int32_t place(std::int32_t npu) const { return place_[npu]; }

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
          price_(hops.bundles.size(), 0), up_(hops.out.size()), down_(hops.out.size()) {
        for (std::size_t i = 0; i < times.holds.size(); ++i)
            held_[hops.steps.items[i]] = static_cast<double>(times.holds[i].length);
        quickest_ = static_cast<double>(
            std::max<ps>(1, *std::min_element(times.duration.begin(), times.duration.end())));
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
        grow_all();
        find_ways();
        std::int32_t best = -1;
        double least = far;
        for (const auto& box : boxes_.members)
            for (auto root : box)
                if (const double cost = total(root); cost < least) least = cost, best = root;
        return best < 0 ? Tree{} : made(best);
    }

    // The cheapest pair of gateways of every box, one box after the other, twice.
    Shot choose_shot() {
        grow_all();
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

    void grow_all() {
        for (const auto& box : boxes_.members)
            for (auto root : box) {
                grow(root, box, true, up_[root]);
                grow(root, box, false, down_[root]);
            }
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

    // By NPU and other box: the cheapest way for the other box's sum to come here, and for the
    // result to get there from here.
    void find_ways() {
        const auto count = static_cast<std::size_t>(boxes_.count());
        come_.assign(hops_.out.size() * count, {});
        go_.assign(hops_.out.size() * count, {});
        for (auto hop : boxes_.across) {
            const auto from = hops_.src[hop], to = hops_.dst[hop];
            const double cost = price(hop);
            auto& come = come_[to * count + boxes_[from]];
            auto& go = go_[from * count + boxes_[to]];
            if (cost + up_[from].cost < come.cost) come = {cost + up_[from].cost, hop};
            if (cost + down_[to].cost < go.cost) go = {cost + down_[to].cost, hop};
        }
    }

    // The cheapest way between a root's box and another one; deeper in the box costs more.
    Way way(std::int32_t root, std::int32_t other, bool inward) const {
        const auto& ways = inward ? come_ : go_;
        const auto& depth = (inward ? up_ : down_)[root].depth;
        Way best;
        for (auto npu : boxes_.members[boxes_[root]]) {
            const auto& known = ways[npu * boxes_.count() + other];
            const double cost = known.cost + depth[boxes_.place(npu)];
            if (known.hop >= 0 && cost < best.cost) best = {cost, known.hop};
        }
        return best;
    }
    double total(std::int32_t root) const {
        double sum = up_[root].cost + down_[root].cost;
        for (std::int32_t box = 0; box < boxes_.count(); ++box)
            if (box != boxes_[root]) sum += way(root, box, true).cost + way(root, box, false).cost;
        return sum;
    }
    Tree made(std::int32_t root) const {
        Tree tree{up_[root].hops, down_[root].hops};
        const auto join = [](auto& hops, auto across, const Grown& there) {
            hops.push_back(across);
            hops.insert(hops.end(), there.hops.begin(), there.hops.end());
        };
        for (std::int32_t box = 0; box < boxes_.count(); ++box) {
            if (box == boxes_[root]) continue;
            const auto come = way(root, box, true).hop, go = way(root, box, false).hop;
            join(tree.up, come, up_[hops_.src[come]]);
            join(tree.down, go, down_[hops_.dst[go]]);
        }
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
    std::vector<Grown> up_, down_;  // by root
    std::vector<Way> come_, go_;    // by NPU and box
    std::vector<std::int32_t> pair_, by_;
    std::vector<double> least_;
};

}  // namespace weft
