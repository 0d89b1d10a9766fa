#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.h"
#include "bind.h"
#include "matching.h"
#include "retime.h"
#include "trees.h"
#include "unicast.h"

namespace weft::bindings {
namespace {

using Int32 = Array<std::int32_t>;
using Int64 = Array<std::int64_t>;
using Bytes = Array<std::uint8_t>;
using Scheduled = std::tuple<Int32, Int32, Int32, Bytes, Int32, Int64, Int64, Int64, Int32, ps>;

// (chunk, src, dst, reduce, route, start, end, route offsets, route links, time); no routes where
// a route is a link.
Scheduled give_schedule(const Hops& hops, const HopTimes& times, Schedule&& schedule) {
    std::vector<std::int32_t> src(schedule.hop.size()), dst(schedule.hop.size());
    std::vector<ps> end(schedule.hop.size());
    {
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < src.size(); ++i) {
            const auto hop = schedule.hop[i];
            src[i] = hops.src[hop];
            dst[i] = hops.dst[hop];
            end[i] = schedule.start[i] + times.duration[hop];
        }
    }
    auto& route = hops.single_links ? schedule.hop : schedule.route;
    schedule.reduce.resize(schedule.hop.size(), 0);
    return {give(std::move(schedule.chunk)),
            give(std::move(src)),
            give(std::move(dst)),
            give(std::move(schedule.reduce)),
            give(std::move(route)),
            give(std::move(schedule.start)),
            give(std::move(end)),
            give(std::move(schedule.routes.offsets)),
            give(std::move(schedule.routes.items)),
            schedule.time};
}

// Runs a planner for chunks of `bytes`, without the interpreter's lock.
template <class Plan>
Scheduled planned(const Network& network, CostModel cost, std::int64_t bytes, Plan plan) {
    Hops hops;
    HopTimes times;
    Schedule schedule;
    {
        nb::gil_scoped_release release;
        hops = find_hops(network, cost, bytes);
        times = time_hops(network, hops, cost, bytes);
        schedule = plan(hops, times);
    }
    return give_schedule(hops, times, std::move(schedule));
}

}  // namespace

void bind_synthesis(nb::module_& module) {
    nb::exception<Cancelled>(module, "Cancelled");
    nb::class_<Progress>(module, "Progress")
        .def(nb::init<>())
        .def("cancel", [](Progress& self) { self.cancelled = true; })
        .def_prop_ro("done", [](const Progress& self) { return self.done.load(); })
        .def_prop_ro("total", [](const Progress& self) { return self.total.load(); });

    module.def(
        "match",
        [](const Network& network, CostModel cost, std::int64_t bytes,
           Column<std::int64_t> holder_offsets, Column<std::int32_t> holders,
           Column<std::int32_t> takers, Column<std::int64_t> set_offsets,
           Column<std::int32_t> set_members, std::uint64_t seed, ps bound, int threads,
           Progress& progress) {
            return planned(network, cost, bytes, [&](const Hops& hops, const HopTimes& times) {
                const Spread spread{rows(holder_offsets, holders), copy(takers),
                                    rows(set_offsets, set_members)};
                return search(network, hops, times, spread, bytes, seed, bound, threads, progress);
            });
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("bytes"), nb::arg("holder_offsets"),
        nb::arg("holders"), nb::arg("takers"), nb::arg("set_offsets"), nb::arg("set_members"),
        nb::arg("seed"), nb::arg("bound"), nb::arg("threads"), nb::arg("progress"));

    module.def(
        "unicast",
        [](const Network& network, CostModel cost, std::int64_t bytes, Column<std::int32_t> src,
           Column<std::int32_t> dst, std::uint64_t seed, ps bound, Progress& progress) {
            return planned(network, cost, bytes, [&](const Hops& hops, const HopTimes& times) {
                return route_and_schedule(hops, times, {copy(src), copy(dst)}, seed, bound,
                                          progress);
            });
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("bytes"), nb::arg("src"), nb::arg("dst"),
        nb::arg("seed"), nb::arg("bound"), nb::arg("progress"));

    module.def(
        "trees",
        [](const Network& network, CostModel cost, std::int64_t bytes,
           Column<std::int32_t> members, std::int32_t root, std::int32_t chunks,
           std::uint64_t seed, ps bound, Progress& progress) {
            return planned(network, cost, bytes, [&](const Hops& hops, const HopTimes& times) {
                return plan_trees(hops, times, {copy(members), root, chunks}, seed, bound,
                                  progress);
            });
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("bytes"), nb::arg("members"),
        nb::arg("root"), nb::arg("chunks"), nb::arg("seed"), nb::arg("bound"),
        nb::arg("progress"));

    module.def(
        "retime",
        [](const Network& network, Column<std::int64_t> route_offsets,
           Column<std::int32_t> route_links, CostModel cost, Column<std::int32_t> chunk,
           Column<std::int32_t> src, Column<std::int32_t> dst, Column<std::int32_t> route,
           Column<std::int64_t> start, Column<std::int64_t> chunk_bytes) {
            Times times;
            {
                nb::gil_scoped_release release;
                times = retime(network, rows(route_offsets, route_links), cost,
                               {view(chunk), view(src), view(dst), view(route), view(start)},
                               view(chunk_bytes));
            }
            return std::tuple(give(std::move(times.start)), give(std::move(times.end)));
        },
        nb::arg("network"), nb::arg("route_offsets"), nb::arg("route_links"), nb::arg("cost"),
        nb::arg("chunk"), nb::arg("src"), nb::arg("dst"), nb::arg("route"), nb::arg("start"),
        nb::arg("chunk_bytes"));

    module.def(
        "tighten",
        [](const Network& network, Column<std::int64_t> route_offsets,
           Column<std::int32_t> route_links, CostModel cost, Column<std::int32_t> chunk,
           Column<std::int32_t> src, Column<std::int32_t> dst, Column<std::int32_t> route,
           Column<std::int64_t> start, Column<std::int64_t> end, std::int32_t chunks,
           std::int64_t bytes) {
            Times times;
            std::vector<std::int32_t> order;
            {
                nb::gil_scoped_release release;
                times = tighten(network, rows(route_offsets, route_links), cost,
                                {view(chunk), view(src), view(dst), view(route), view(start)},
                                chunks, bytes, {copy(start), copy(end)}, order);
            }
            return std::tuple(give(std::move(order)), give(std::move(times.start)),
                              give(std::move(times.end)));
        },
        nb::arg("network"), nb::arg("route_offsets"), nb::arg("route_links"), nb::arg("cost"),
        nb::arg("chunk"), nb::arg("src"), nb::arg("dst"), nb::arg("route"), nb::arg("start"),
        nb::arg("end"), nb::arg("chunks"), nb::arg("bytes"));
}

}  // namespace weft::bindings
