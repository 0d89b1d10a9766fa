#include "planners/rooted/rooted.h"

#include "bindings/planned.h"

namespace weft::bindings {
namespace {

const Registration registration("rooted", [](nb::module_& module) {
    bind_planner(
        module, "rooted",
        [](const Network& network, CostModel cost, const Chunks& chunks, const Search& search) {
            const auto bytes = chunks.largest();
            const Hops hops = find_hops(network, cost, bytes);
            const HopTimes times = time_hops(network, hops, cost, bytes);
            return planned(hops, plan_rooted(network, cost, hops, times, chunks, search),
                           [&](std::int32_t) -> const HopTimes& { return times; });
        });
});

}  // namespace
}  // namespace weft::bindings
