// Nodes that wait for each other: running them, and finding those that never can.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/grouping.h"

namespace weft {

// Of each node those that wait for it. `each_before(node, visit)` visits what a node waits for.
template <class Node>
Grouped<Node> turn_round(std::size_t count, const auto& each_before) {
    return grouped<Node>(count, [&](const auto& add) {
        for (std::size_t node = 0; node < count; ++node)
            each_before(node, [&](Node before) { add(before, node); });
    });
}

// Calls run(before, after) for every node that waits and what it waits for, once that has run
// itself. Gives how many each still waits for: none but for those that can never run.
template <class Node>
std::vector<Node> run_all(const Grouped<Node>& waiting, const auto& run) {
    std::vector<Node> left(waiting.offsets.size() - 1), ready;
    for (const Node node : waiting.items) ++left[node];
    ready.reserve(left.size());
    for (std::size_t node = 0; node < left.size(); ++node)
        if (left[node] == 0) ready.push_back(static_cast<Node>(node));
    for (std::size_t done = 0; done < ready.size(); ++done)
        for (const Node after : waiting[ready[done]]) {
            run(ready[done], after);
            if (--left[after] == 0) ready.push_back(after);
        }
    return left;
}

// One that waits for itself over others, if something can never run. Each of those waits for
// another: going back must come round to a circle.
template <class Node>
std::optional<Node> node_on_circle(const std::vector<Node>& left, const auto& each_before) {
    const auto first = std::find_if(left.begin(), left.end(), [](Node count) { return count > 0; });
    if (first == left.end()) return std::nullopt;
    auto node = static_cast<Node>(first - left.begin());
    std::vector<bool> seen(left.size());
    while (!seen[node]) {
        seen[node] = true;
        std::optional<Node> before;
        each_before(node, [&](Node one) {
            if (!before && left[one] > 0) before = one;
        });
        node = *before;
    }
    return node;
}

}  // namespace weft
