#include "traces/flow.h"
#include "traces/run_order.h"

namespace weft::trace {

Levels find_levels(const Graph& graph) {
    const auto count = static_cast<std::size_t>(graph.nodes());
    const auto each_before = [&](std::int64_t node, const auto& visit) {
        for (auto k = graph.offsets[node]; k < graph.offsets[node + 1]; ++k) visit(graph.waits[k]);
        const auto message = graph.message[node];
        if (message >= 0 && graph.recv[message] == node) visit(graph.send[message]);
    };
    Levels found;
    found.level.assign(count, 0);
    const auto after = turn_round<std::int64_t>(count, each_before);
    const auto left = run_all(after, [&](std::int64_t before, std::int64_t node) {
        found.level[node] = found.level[before] + 1;  // the last one counts: the deepest
    });
    found.stuck = node_on_circle(left, each_before).value_or(-1);
    return found;
}

}  // namespace weft::trace
