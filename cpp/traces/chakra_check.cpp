// What can be said about one rank's nodes without looking at the other ranks.
#include <algorithm>
#include <bit>
#include <stdexcept>

#include "traces/chakra_graph.h"
#include "traces/chakra_read.h"
#include "traces/run_order.h"

namespace weft::chakra {

Waiting check_nodes(const Nodes& nodes) {
    const Index index(nodes);
    const auto each_before = [&](std::size_t node, const auto& visit) {
        each_wait(nodes, node, [&](std::uint64_t id) {
            const std::size_t at = index[id];
            if (at == Index::missing)
                throw std::invalid_argument(node_name(nodes.id[node]) + " waits for " +
                                            node_name(id) + ", which is not there");
            visit(at);
        });
    };
    Waiting waiting = turn_round<std::size_t>(nodes.size(), each_before);
    const auto left = run_all(waiting, [](std::size_t, std::size_t) {});
    if (const auto node = node_on_circle(left, each_before))
        throw std::invalid_argument(node_name(nodes.id[*node]) +
                                    " can never run: dependencies form a cycle");
    return waiting;
}

std::uint64_t digest(const Nodes& nodes) {
    const Index index(nodes);
    std::uint64_t sum = 0;  // of one number after the other: it depends on their order
    const auto add = [&](std::uint64_t value) {
        sum = (std::rotl(sum, 23) ^ value) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 32;
    };
    for (std::size_t j = 0; j < nodes.size(); ++j) {
        const std::size_t i = index[j];
        if (i == Index::missing) throw std::invalid_argument(node_name(j) + " is missing");
        add(static_cast<std::uint64_t>(nodes.type[i]));
        for (const Waits* waits : {&nodes.data, &nodes.ctrl}) {
            add((*waits)[i].size());
            for (const std::uint64_t id : (*waits)[i]) add(id);
        }
    }
    return sum;
}

std::string first_difference(const Nodes& found, const Nodes& expected) {
    const Index index(found);
    for (std::size_t j = 0; j < expected.size(); ++j) {
        const std::size_t i = index[j];
        if (i == Index::missing) return node_name(j) + " is missing";
        if (found.type[i] != expected.type[j])
            return node_name(j) + " is of type " + std::to_string(found.type[i]) + ", not " +
                   std::to_string(expected.type[j]);
        if (!std::ranges::equal(found.data[i], expected.data[j]))
            return node_name(j) + " has other data dependencies than its transfer";
        if (!std::ranges::equal(found.ctrl[i], expected.ctrl[j]))
            return node_name(j) + " has other control dependencies than its transfer";
    }
    for (const std::uint64_t id : found.id)
        if (id >= expected.size()) return node_name(id) + " belongs to no transfer";
    return {};
}

}  // namespace weft::chakra
