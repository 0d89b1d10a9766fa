#include "planners/steiner/steiner.h"

#include "bindings/planned.h"

namespace weft::bindings {
namespace {

Planned plan(const Network& network, CostModel cost, const Chunks& chunks, const Search& search) {
    const Hops hops = find_hops(network, cost, chunks.largest());
    const Sizes sizes = group_sizes(chunks.bytes);
    const auto times = time_hops(network, hops, cost, sizes);
    return planned(
        hops, plan_steiner(hops, times, chunks, sizes, search),
        [&](std::int32_t chunk) -> const HopTimes& { return times[sizes.of_chunk[chunk]]; });
}

const Registration registration("steiner", [](nb::module_& module) {
    bind_planner(module, "steiner", plan);
    bind_uniform_planner(module, "steady", plan_steady);
});

}  // namespace
}  // namespace weft::bindings
