#include "planners/symmetric/symmetric.h"

#include "bindings/arrays.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

auto give_plan(const SymmetricPlan& plan) {
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
    return give_all(std::move(chunk), std::move(src), std::move(direction), std::move(start));
}

using Planner = SymmetricPlan (*)(const Directions&, std::int32_t, const Search&);

void bind_planner(nb::module_& module, const char* name, Planner planner) {
    module.def(
        name,
        [planner](const Directions& directions, std::int32_t pieces, const Search& search) {
            return give_plan(unlocked([&] { return planner(directions, pieces, search); }));
        },
        nb::arg("directions"), nb::arg("pieces"), nb::arg("search"),
        "Chunk, source, direction and start of each row.");
}

void bind(nb::module_& module) {
    nb::class_<Directions>(module, "Directions",
                           "The hops out of each NPU of a grid that translates onto itself, and "
                           "what they occupy.")
        .def(
            "__init__",
            [](Directions* self, Column<std::int32_t> sizes, Column<std::int32_t> dimension,
               Column<std::int32_t> step, Column<std::int32_t> resource, Column<std::int64_t> hold,
               Column<std::int64_t> duration) {
                new (self) Directions{copy(sizes),    copy(dimension), copy(step),
                                      copy(resource), copy(hold),      copy(duration)};
            },
            nb::kw_only(), nb::arg("sizes"), nb::arg("dimension"), nb::arg("step"),
            nb::arg("resource"), nb::arg("hold"), nb::arg("duration"));
    bind_planner(module, "symmetric_spread", spread_from_one);
    bind_planner(module, "symmetric_exchange", exchange_from_one);
    module.def(
        "follow_order",
        [](const Directions& directions, std::int32_t pieces, const Column<std::int32_t>& chunk,
           const Column<std::int32_t>& src, const Column<std::int32_t>& direction) {
            return give(unlocked([&] {
                return follow_order(directions, pieces, view(chunk), view(src), view(direction));
            }));
        },
        nb::arg("directions"), nb::arg("pieces"), nb::arg("chunk"), nb::arg("src"),
        nb::arg("direction"), "When each row starts.");
}

const Registration registration("symmetric", bind);

}  // namespace
}  // namespace weft::bindings
