#include "planners/unicast/unicast.h"

#include "bindings/planned.h"

namespace weft::bindings {
namespace {

Planned plan(const Network& network, CostModel cost, const Chunks& chunks, const Search& search) {
    const Hops hops = find_hops(network, cost, chunks.largest());
    const Unicast unicast = unicast_of(network, hops, cost, chunks);
    return planned(
        hops, plan_unicast(hops, unicast, search),
        [&](std::int32_t chunk) -> const HopTimes& { return unicast.times[unicast.size[chunk]]; });
}

const Registration registration("unicast",
                                [](nb::module_& module) { bind_planner(module, "unicast", plan); });

}  // namespace
}  // namespace weft::bindings
