#include "bounds/flow.h"

#include "base/parallel.h"
#include "bounds/flow_router.h"

namespace weft {
namespace {

// Sources are dealt out in parts of fixed size, so that sums do not depend on the threads.
constexpr std::int32_t sources_a_part = 32;

struct Part {
    FlowRouter::Wide total = 0;
    std::vector<double> loads;
};

}  // namespace

Routing shortest_routing(const Network& network, std::span<const std::int64_t> lengths,
                         const Flows& flows, int threads) {
    const Metric metric(network, lengths);
    std::vector<Part> parts((network.nodes() + sources_a_part - 1) / sources_a_part);
    in_parallel(parts.size(), threads, [&](std::size_t i) {
        const auto first = static_cast<std::int32_t>(i) * sources_a_part;
        const auto end = std::min(first + sources_a_part, network.nodes());
        if (flows.offsets[first] == flows.offsets[end]) return;  // nobody sends
        parts[i].loads.assign(network.links(), 0.0);
        FlowRouter router(metric, flows);
        for (auto source = first; source < end; ++source)
            parts[i].total += router.route(source, parts[i].loads);
    });
    Routing routing;
    routing.loads.assign(network.links(), 0.0);
    FlowRouter::Wide total = 0;
    for (const auto& part : parts) {
        total += part.total;
        for (std::size_t link = 0; link < part.loads.size(); ++link)
            routing.loads[link] += part.loads[link];
    }
    routing.total = static_cast<double>(total) * (1 - 1e-15);
    return routing;
}

}  // namespace weft
