// What can be said about one rank's nodes without looking at the other ranks.
#include <algorithm>
#include <stdexcept>

#include "chakra_graph.h"
#include "chakra_read.h"

namespace weft::chakra {
namespace {

// A node that can never run: one whose dependencies run in a circle, or that waits for such.
void check_acyclic(const Nodes& nodes, const Waiting& waiting) {
    std::vector<std::size_t> left(nodes.size(), 0), ready;
    for (const std::size_t node : waiting.nodes) ++left[node];
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (left[i] == 0) ready.push_back(i);
    for (std::size_t done = 0; done < ready.size(); ++done) {
        const std::size_t node = ready[done];
        for (auto k = waiting.offsets[node]; k < waiting.offsets[node + 1]; ++k)
            if (--left[waiting.nodes[k]] == 0) ready.push_back(waiting.nodes[k]);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (left[i] > 0)
            throw std::invalid_argument(node_name(nodes.id[i]) +
                                        " can never run: dependencies form a cycle");
}

bool same_waits(const Waits& a, std::size_t i, const Waits& b, std::size_t j) {
    return std::equal(a.ids.begin() + a.offsets[i], a.ids.begin() + a.offsets[i + 1],
                      b.ids.begin() + b.offsets[j], b.ids.begin() + b.offsets[j + 1]);
}

}  // namespace

void check_nodes(const Nodes& nodes) {
    const Index index(nodes);
    check_acyclic(nodes, turn_round(nodes, index));
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
