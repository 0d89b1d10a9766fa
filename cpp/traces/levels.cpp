#include "traces/flow.h"

namespace weft::trace {
namespace {

// Calls visit(after) for each node that can only run after `node`.
struct Successors {
    std::vector<std::int64_t> offsets, nodes;

    explicit Successors(const Graph& graph)
        : offsets(static_cast<std::size_t>(graph.nodes()) + 1), nodes(graph.waits.size()) {
        for (const auto before : graph.waits) ++offsets[before + 1];
        for (std::int64_t i = 0; i < graph.nodes(); ++i) offsets[i + 1] += offsets[i];
        std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
        for (std::int64_t i = 0; i < graph.nodes(); ++i)
            for (auto k = graph.offsets[i]; k < graph.offsets[i + 1]; ++k)
                nodes[next[graph.waits[k]]++] = i;
    }

    template <class Visit>
    void each(const Graph& graph, std::int64_t node, Visit visit) const {
        for (auto k = offsets[node]; k < offsets[node + 1]; ++k) visit(nodes[k]);
        const auto message = graph.message[node];
        if (message >= 0 && graph.send[message] == node) visit(graph.recv[message]);
    }
};

// Some node that waits has one before it that waits too: going back must come round to a circle.
std::int64_t node_on_circle(const Graph& graph, const std::vector<std::int64_t>& left) {
    std::int64_t node = 0;
    while (left[node] == 0) ++node;
    std::vector<bool> seen(left.size());
    while (!seen[node]) {
        seen[node] = true;
        std::int64_t before = -1;
        for (auto k = graph.offsets[node]; k < graph.offsets[node + 1] && before < 0; ++k)
            if (left[graph.waits[k]] > 0) before = graph.waits[k];
        node = before >= 0 ? before : graph.send[graph.message[node]];
    }
    return node;
}

}  // namespace

Levels find_levels(const Graph& graph) {
    const Successors after(graph);
    const auto count = static_cast<std::size_t>(graph.nodes());
    Levels found;
    found.level.assign(count, 0);
    std::vector<std::int64_t> left(count), ready;
    ready.reserve(count);
    for (std::int64_t i = 0; i < graph.nodes(); ++i) {
        const auto message = graph.message[i];
        left[i] = graph.offsets[i + 1] - graph.offsets[i] +
                  (message >= 0 && graph.recv[message] == i ? 1 : 0);
        if (left[i] == 0) ready.push_back(i);
    }
    for (std::size_t done = 0; done < ready.size(); ++done)
        after.each(graph, ready[done], [&](std::int64_t node) {
            found.level[node] = found.level[ready[done]] + 1;  // the last one counts: the deepest
            if (--left[node] == 0) ready.push_back(node);
        });
    if (ready.size() < count) found.stuck = node_on_circle(graph, left);
    return found;
}

}  // namespace weft::trace
