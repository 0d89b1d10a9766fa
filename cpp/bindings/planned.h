// A planned schedule on its way to Python.
#pragma once

#include <utility>
#include <vector>

#include "base/hops.h"
#include "bindings/values.h"
#include "planners/schedule.h"

namespace weft::bindings {

// A schedule whose hops are said by their ends; no routes where a route is a link.
struct Planned : Schedule {
    std::vector<std::int32_t> src, dst;
    std::vector<ps> end;
};

// `times_of(chunk)` are the times of hops for a chunk.
template <class TimesOf>
Planned planned(const Hops& hops, Schedule&& schedule, TimesOf times_of) {
    Planned plan{std::move(schedule), {}, {}, {}};
    const auto rows = plan.hop.size();
    plan.src.resize(rows);
    plan.dst.resize(rows);
    plan.end.resize(rows);
    plan.reduce.resize(rows, 0);
    for (std::size_t i = 0; i < rows; ++i) {
        const auto hop = plan.hop[i];
        plan.src[i] = hops.src[hop];
        plan.dst[i] = hops.dst[hop];
        plan.end[i] = plan.start[i] + times_of(plan.chunk[i]).duration[hop];
    }
    if (hops.single_links) plan.route = std::move(plan.hop);
    return plan;
}

// Binds a planner of `plan(network, cost, chunks, search)`, which runs without the interpreter's
// lock.
template <class Plan>
void bind_planner(nb::module_& module, const char* name, Plan plan) {
    module.def(
        name,
        [plan](const Network& network, CostModel cost, const BoundChunks& chunks,
               const Search& search) -> Planned { return plan(network, cost, chunks, search); },
        "network"_a, "cost"_a, "chunks"_a, "search"_a, nb::call_guard<nb::gil_scoped_release>());
}

// The same for `plan(network, hops, times, chunks, search)`, which takes all chunks for the
// largest.
template <class Plan>
void bind_uniform_planner(nb::module_& module, const char* name, Plan plan) {
    bind_planner(
        module, name,
        [plan](const Network& network, CostModel cost, const Chunks& chunks, const Search& search) {
            const auto bytes = chunks.largest();
            const Hops hops = find_hops(network, cost, bytes);
            const HopTimes times = time_hops(network, hops, cost, bytes);
            return planned(hops, plan(network, hops, times, chunks, search),
                           [&](std::int32_t) -> const HopTimes& { return times; });
        });
}

}  // namespace weft::bindings
