// What can be said about one rank's nodes without looking at the other ranks.
#include <algorithm>
#include <bit>
#include <stdexcept>

#include "traces/chakra_graph.h"
#include "traces/chakra_read.h"

namespace weft::chakra {
namespace {

// Some node that is left waits for another that is left: going back must come round to a circle.
std::size_t node_on_circle(const Nodes& nodes, const Index& index,
                           const std::vector<std::size_t>& left) {
    std::size_t node = 0;
    while (left[node] == 0) ++node;
    std::vector<bool> seen(nodes.size());
    while (!seen[node]) {
        seen[node] = true;
        std::size_t before = node;
        each_wait(nodes, node, [&](std::uint64_t id) {
            if (left[index[id]] > 0) before = index[id];
        });
        node = before;
    }
    return node;
}

void check_acyclic(const Nodes& nodes, const Index& index, const Waiting& waiting) {
    std::vector<std::size_t> left(nodes.size(), 0), ready;
    for (const std::size_t node : waiting.nodes) ++left[node];
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (left[i] == 0) ready.push_back(i);
    for (std::size_t done = 0; done < ready.size(); ++done) {
        const std::size_t node = ready[done];
        for (auto k = waiting.offsets[node]; k < waiting.offsets[node + 1]; ++k)
            if (--left[waiting.nodes[k]] == 0) ready.push_back(waiting.nodes[k]);
    }
    if (ready.size() < nodes.size())
        throw std::invalid_argument(node_name(nodes.id[node_on_circle(nodes, index, left)]) +
                                    " can never run: dependencies form a cycle");
}

// Mixes one number after the other into a sum that depends on their order.
class Digest {
  public:
    void add(std::uint64_t value) {
        state_ = std::rotl(state_, 23) ^ value;
        state_ *= 0x9e3779b97f4a7c15u;
        state_ ^= state_ >> 32;
    }
    std::uint64_t value() const { return state_; }

  private:
    std::uint64_t state_ = 0;
};

bool same_waits(const Waits& a, std::size_t i, const Waits& b, std::size_t j) {
    return std::equal(a.ids.begin() + a.offsets[i], a.ids.begin() + a.offsets[i + 1],
                      b.ids.begin() + b.offsets[j], b.ids.begin() + b.offsets[j + 1]);
}

}  // namespace

void check_nodes(const Nodes& nodes) {
    const Index index(nodes);
    check_acyclic(nodes, index, turn_round(nodes, index));
}

std::uint64_t digest(const Nodes& nodes) {
    const Index index(nodes);
    Digest sum;
    for (std::size_t j = 0; j < nodes.size(); ++j) {
        const std::size_t i = index[j];
        if (i == Index::missing) throw std::invalid_argument(node_name(j) + " is missing");
        sum.add(static_cast<std::uint64_t>(nodes.type[i]));
        for (const Waits* waits : {&nodes.data, &nodes.ctrl}) {
            sum.add(static_cast<std::uint64_t>(waits->offsets[i + 1] - waits->offsets[i]));
            for (auto k = waits->offsets[i]; k < waits->offsets[i + 1]; ++k)
                sum.add(waits->ids[static_cast<std::size_t>(k)]);
        }
    }
    return sum.value();
}

std::string first_difference(const Nodes& found, const Nodes& expected) {
    const Index index(found);
    for (std::size_t j = 0; j < expected.size(); ++j) {
        const std::size_t i = index[j];
        if (i == Index::missing) return node_name(j) + " is missing";
        if (found.type[i] != expected.type[j])
            return node_name(j) + " is of type " + std::to_string(found.type[i]) + ", not " +
                   std::to_string(expected.type[j]);
        if (!same_waits(found.data, i, expected.data, j))
            return node_name(j) + " has other data dependencies than its transfer";
        if (!same_waits(found.ctrl, i, expected.ctrl, j))
            return node_name(j) + " has other control dependencies than its transfer";
    }
    for (const std::uint64_t id : found.id)
        if (id >= expected.size()) return node_name(id) + " belongs to no transfer";
    return {};
}

}  // namespace weft::chakra
