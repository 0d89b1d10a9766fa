#include "planners/symmetric/symmetric.h"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/arrays.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

using Int32 = Array<std::int32_t>;
using Int64 = Array<std::int64_t>;
using Planned = std::tuple<Int32, Int32, Int32, Int64>;

Planned give_plan(const SymmetricPlan& plan) {
    const auto count = plan.rows.size();
    std::vector<std::int32_t> chunk(count), src(count), direction(count);
    std::vector<ps> start(count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto& row = plan.rows[i];
        chunk[i] = row.chunk;
        src[i] = row.src;
        direction[i] = row.direction;
        start[i] = row.start;
    }
    return {give(std::move(chunk)), give(std::move(src)), give(std::move(direction)),
            give(std::move(start))};
}

using Planner = SymmetricPlan (*)(const Directions&, std::int32_t, std::uint64_t, ps, Progress&);

void bind_planner(nb::module_& module, const char* name, Planner planner) {
    module.def(
        name,
        [planner](const Directions& directions, std::int32_t pieces, std::uint64_t seed, ps goal,
                  Progress& progress) {
            SymmetricPlan plan;
            {
                nb::gil_scoped_release release;
                plan = planner(directions, pieces, seed, goal, progress);
            }
            return give_plan(plan);
        },
        nb::arg("directions"), nb::arg("pieces"), nb::arg("seed"), nb::arg("goal"),
        nb::arg("progress"));
}

void bind(nb::module_& module) {
    nb::class_<Directions>(module, "Directions")
        .def(
            "__init__",
            [](Directions* self, Column<std::int32_t> sizes, Column<std::int32_t> dimension,
               Column<std::int32_t> step, Column<std::int32_t> resource, Column<std::int64_t> hold,
               Column<std::int64_t> duration) {
                new (self) Directions{copy(sizes),    copy(dimension), copy(step),
                                      copy(resource), copy(hold),      copy(duration)};
            },
            nb::arg("sizes"), nb::arg("dimension"), nb::arg("step"), nb::arg("resource"),
            nb::arg("hold"), nb::arg("duration"));
    bind_planner(module, "symmetric_spread", spread_from_one);
    bind_planner(module, "symmetric_exchange", exchange_from_one);
    module.def(
        "follow_order",
        [](const Directions& directions, std::int32_t pieces, Column<std::int32_t> chunk,
           Column<std::int32_t> src, Column<std::int32_t> direction) {
            std::vector<ps> start;
            {
                nb::gil_scoped_release release;
                start = follow_order(directions, pieces, view(chunk), view(src), view(direction));
            }
            return give(std::move(start));
        },
        nb::arg("directions"), nb::arg("pieces"), nb::arg("chunk"), nb::arg("src"),
        nb::arg("direction"));
    module.def(
        "hop_times",
        [](CostModel cost, Column<std::int64_t> bandwidth, Column<std::int64_t> latency,
           Column<std::int64_t> offsets, std::int64_t bytes) {
            std::vector<Speed> speed(bandwidth.size());
            for (std::size_t i = 0; i < speed.size(); ++i)
                speed[i] = {bandwidth.data()[i], latency.data()[i]};
            std::vector<Hold> holds(speed.size());
            std::vector<ps> duration(offsets.size() - 1), begin, length;
            for (std::size_t i = 0; i < duration.size(); ++i) {
                const auto first = static_cast<std::size_t>(offsets.data()[i]);
                const auto count = static_cast<std::size_t>(offsets.data()[i + 1]) - first;
                duration[i] = hop(cost, bytes, std::span(speed).subspan(first, count),
                                  std::span(holds).subspan(first, count));
            }
            for (const auto& hold : holds) {
                begin.push_back(hold.offset);
                length.push_back(hold.length);
            }
            return std::tuple(give(std::move(duration)), give(std::move(begin)),
                              give(std::move(length)));
        },
        nb::arg("cost"), nb::arg("bandwidth"), nb::arg("latency"), nb::arg("offsets"),
        nb::arg("bytes"));
}

const Registration registration("symmetric", bind);

}  // namespace
}  // namespace weft::bindings
