#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "bindings/bind.h"
#include "bindings/scheduled.h"
#include "planners/matching/matching.h"
#include "planners/retime.h"
#include "planners/trees/trees.h"

namespace weft::bindings {
namespace {

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
    return give_schedule(hops, std::move(schedule),
                         [&](std::int32_t) -> const HopTimes& { return times; });
}

void bind(nb::module_& module) {
    nb::exception<Cancelled>(module, "Cancelled");
    nb::class_<Progress>(module, "Progress")
        .def(nb::init<>())
        .def("cancel", [](Progress& self) { self.cancelled = true; })
        .def("enter",
             [](Progress& self, std::string phase) {
                 if (self.cancelled) throw Cancelled();
                 self.enter(std::move(phase));
             })
        .def("begin",
             [](Progress& self, std::int64_t work) {
                 if (self.cancelled) throw Cancelled();
                 self.begin(work);
             })
        .def("advance",
             [](Progress& self) {
                 if (self.cancelled) throw Cancelled();
                 ++self.done;
             })
        .def("check",
             [](const Progress& self) {
                 if (self.cancelled) throw Cancelled();
             })
        .def_prop_ro("phase", &Progress::phase)
        .def_prop_ro("stage", [](const Progress& self) { return self.stage.load(); })
        .def_prop_ro("done", [](const Progress& self) { return self.done.load(); })
        .def_prop_ro("total", [](const Progress& self) { return self.total.load(); });

    module.def(
        "match",
        [](const Network& network, CostModel cost, std::int64_t bytes,
           Column<std::int64_t> holder_offsets, Column<std::int32_t> holders,
           Column<std::int32_t> takers, Column<std::int32_t> reach,
           Column<std::int64_t> set_offsets, Column<std::int32_t> set_members, std::uint64_t seed,
           ps bound, int threads, Progress& progress) {
            return planned(network, cost, bytes, [&](const Hops& hops, const HopTimes& times) {
                const Spread spread{rows(holder_offsets, holders), copy(takers), copy(reach),
                                    rows(set_offsets, set_members)};
                return search(network, hops, times, spread, bytes, seed, bound, threads, progress);
            });
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("bytes"), nb::arg("holder_offsets"),
        nb::arg("holders"), nb::arg("takers"), nb::arg("reach"), nb::arg("set_offsets"),
        nb::arg("set_members"), nb::arg("seed"), nb::arg("bound"), nb::arg("threads"),
        nb::arg("progress"));

    module.def(
        "trees",
        [](const Network& network, CostModel cost, std::int64_t bytes, Column<std::int32_t> members,
           Column<std::int32_t> reach, std::int32_t root, std::int32_t chunks, std::uint64_t seed,
           ps bound, Progress& progress) {
            return planned(network, cost, bytes, [&](const Hops& hops, const HopTimes& times) {
                return plan_trees(hops, times, {copy(members), copy(reach), root, chunks}, seed,
                                  bound, progress);
            });
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("bytes"), nb::arg("members"), nb::arg("reach"),
        nb::arg("root"), nb::arg("chunks"), nb::arg("seed"), nb::arg("bound"), nb::arg("progress"));

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

const Registration registration("synthesis", bind);

}  // namespace
}  // namespace weft::bindings
