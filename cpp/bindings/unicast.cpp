#include "planners/unicast/unicast.h"

#include "bindings/bind.h"
#include "bindings/scheduled.h"
#include "planners/sizes.h"

namespace weft::bindings {
namespace {

Scheduled plan(const Network& network, CostModel cost, std::span<const std::int64_t> bytes,
               Unicast unicast, std::uint64_t seed, ps bound, int threads, Progress& progress) {
    Hops hops;
    Schedule schedule;
    {
        nb::gil_scoped_release release;
        hops = find_hops(network, cost, bytes);
        Sizes sizes = group_sizes(bytes);
        unicast.times = time_hops(network, hops, cost, sizes);
        unicast.size = std::move(sizes.of_chunk);
        schedule = plan_unicast(hops, unicast, seed, bound, threads, progress);
    }
    return give_schedule(hops, std::move(schedule), [&](std::int32_t chunk) -> const HopTimes& {
        return unicast.times[unicast.size[chunk]];
    });
}

void bind(nb::module_& module) {
    module.def(
        "unicast",
        [](const Network& network, CostModel cost, Column<std::int64_t> bytes,
           Column<std::int32_t> src, Column<std::int32_t> dst, Column<std::int32_t> reach,
           Column<std::int64_t> set_offsets, Column<std::int32_t> set_members, std::uint64_t seed,
           ps bound, int threads, Progress& progress) {
            return plan(network, cost, view(bytes),
                        {copy(src), copy(dst), copy(reach), rows(set_offsets, set_members), {}, {}},
                        seed, bound, threads, progress);
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("bytes"), nb::arg("src"), nb::arg("dst"),
        nb::arg("reach"), nb::arg("set_offsets"), nb::arg("set_members"), nb::arg("seed"),
        nb::arg("bound"), nb::arg("threads"), nb::arg("progress"));
}

const Registration registration("unicast", bind);

}  // namespace
}  // namespace weft::bindings
