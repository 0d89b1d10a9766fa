#include "planners/steiner/steiner.h"

#include "bindings/bind.h"
#include "bindings/scheduled.h"

namespace weft::bindings {
namespace {

Scheduled plan(const Network& network, CostModel cost, Demands demands, std::uint64_t seed,
               ps bound, int threads, Progress& progress) {
    Hops hops;
    Sizes sizes;
    std::vector<HopTimes> times;
    Schedule schedule;
    {
        nb::gil_scoped_release release;
        hops = find_hops(network, cost, demands.bytes);
        sizes = group_sizes(demands.bytes);
        times = time_hops(network, hops, cost, sizes);
        schedule = plan_steiner(hops, times, demands, sizes, seed, bound, threads, progress);
    }
    return give_schedule(hops, std::move(schedule), [&](std::int32_t chunk) -> const HopTimes& {
        return times[sizes.of_chunk[chunk]];
    });
}

void bind(nb::module_& module) {
    module.def(
        "steiner",
        [](const Network& network, CostModel cost, Column<std::int64_t> bytes, Column<bool> reduce,
           Column<std::int32_t> pre, Column<std::int32_t> post, Column<std::int32_t> reach,
           Column<std::int64_t> set_offsets, Column<std::int32_t> set_members, std::uint64_t seed,
           ps bound, int threads, Progress& progress) {
            return plan(network, cost,
                        {copy(bytes),
                         {reduce.data(), reduce.data() + reduce.size()},
                         copy(pre),
                         copy(post),
                         copy(reach),
                         rows(set_offsets, set_members)},
                        seed, bound, threads, progress);
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("bytes"), nb::arg("reduce"), nb::arg("pre"),
        nb::arg("post"), nb::arg("reach"), nb::arg("set_offsets"), nb::arg("set_members"),
        nb::arg("seed"), nb::arg("bound"), nb::arg("threads"), nb::arg("progress"));
}

const Registration registration("steiner", bind);

}  // namespace
}  // namespace weft::bindings
