#include "topology/automorphisms.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "topology/partition.h"

namespace weft {

namespace {

using Nodes = std::vector<std::int32_t>;

// Parts of nodes that some automorphisms move to each other.
class Orbits {
  public:
    explicit Orbits(std::size_t nodes) : parent_(nodes) {
        std::iota(parent_.begin(), parent_.end(), 0);
    }
    std::int32_t find(std::int32_t node) {
        while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
        return node;
    }
    void join(std::span<const std::int32_t> image) {
        for (std::size_t node = 0; node < image.size(); ++node)
            parent_[find(static_cast<std::int32_t>(node))] = find(image[node]);
    }

  private:
    Nodes parent_;
};

// One way to tell all nodes apart: some are singled out, one after the other. A second such way
// with the same trace gives an automorphism.
class Search {
  public:
    Search(const ColouredGraph& graph, std::int64_t budget)
        : neighbours_(graph), base_(neighbours_, graph.colour), budget_(budget) {
        for (std::size_t i = 0; i < graph.src.size(); ++i)
            links_.emplace_back(graph.src[i], graph.dst[i], graph.kind[i]);
        std::ranges::sort(links_);
        base_.refine();
    }

    bool alike(std::span<const std::int32_t> members) const {
        return std::ranges::all_of(members, [&](std::int32_t node) {
            return base_.cell_of(node) == base_.cell_of(members.front());
        });
    }

    // The way that begins with this node.
    void begin(std::int32_t node) {
        Partition way = base_;
        for (std::int32_t open = base_.cell_of(node);;) {
            steps_.push_back({open, node, 0});
            way.single_out(node);
            steps_.back().trace = way.trace();
            open = way.first_open(steps_.size() == 1 ? 0 : open);
            if (open == neighbours_.nodes()) break;
            node = std::ranges::min(way.cell(open));
        }
        order_ = way.order();
        spent_ += way.work() - base_.work();
    }

    // An automorphism that moves the first node of the way to this one.
    std::optional<Nodes> image_to(std::int32_t node) {
        Nodes tried(1, 0);  // how many choices of each step turned out wrong
        while (spent_ < budget_) {
            Partition way = base_;
            std::size_t step = 0;
            bool same = true;
            for (; same && step < steps_.size(); ++step) {
                const auto cell = way.cell(steps_[step].cell);
                if (step == tried.size()) tried.push_back(0);
                if (step > 0 && tried[step] == static_cast<std::int32_t>(cell.size())) {
                    tried.pop_back();
                    break;
                }
                const auto choice = step == 0 ? node : chosen(cell, steps_[step].node, tried[step]);
                spent_ += static_cast<std::int64_t>(cell.size());
                way.single_out(choice);
                same = way.trace() == steps_[step].trace;
            }
            spent_ += way.work() - base_.work() + neighbours_.nodes();
            if (same && step == steps_.size()) {
                Nodes image(order_.size());
                for (std::size_t i = 0; i < order_.size(); ++i) image[order_[i]] = way.order()[i];
                if (keeps_links(image)) return image;
            }
            // The last choice was wrong, or there was none left for it.
            if (tried.size() < 2) return std::nullopt;
            ++tried.back();
        }
        return std::nullopt;
    }

  private:
    struct Step {
        std::int32_t cell, node;
        std::uint64_t trace;
    };

    // Those after `node` first: what goes round moves many nodes at once.
    static std::int32_t chosen(std::span<const std::int32_t> cell, std::int32_t node,
                               std::int32_t number) {
        const auto rank = [node](std::int32_t one) { return std::pair(one <= node, one); };
        if (number == 0) return std::ranges::min(cell, {}, rank);
        Nodes sorted(cell.begin(), cell.end());
        std::ranges::nth_element(sorted, sorted.begin() + number, {}, rank);
        return sorted[number];
    }

    bool keeps_links(const Nodes& image) {
        auto moved = links_;
        for (auto& [src, dst, kind] : moved) std::tie(src, dst) = std::pair(image[src], image[dst]);
        std::ranges::sort(moved);
        spent_ += static_cast<std::int64_t>(moved.size());
        return moved == links_;
    }

    Neighbours neighbours_;
    Partition base_;
    std::int64_t budget_, spent_ = 0;
    std::vector<std::tuple<std::int32_t, std::int32_t, std::int32_t>> links_;
    std::vector<Step> steps_;
    Nodes order_;
};

}  // namespace

Automorphisms find_automorphisms(const ColouredGraph& graph, std::span<const std::int32_t> members,
                                 std::int64_t budget) {
    Automorphisms found;
    Search search(graph, budget);
    if (members.empty() || !search.alike(members)) return found;
    search.begin(members.front());
    Orbits orbits(graph.colour.size());
    for (const auto member : members) {
        if (orbits.find(member) == orbits.find(members.front())) continue;
        const auto image = search.image_to(member);
        if (!image) return {};
        orbits.join(*image);
        found.images.insert(found.images.end(), image->begin(), image->end());
    }
    found.transitive = true;
    return found;
}

}  // namespace weft
