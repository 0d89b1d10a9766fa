#include "planners/symmetric/symmetric.h"

#include "bindings/arrays.h"

namespace weft::bindings {
namespace {

auto give_plan(const SymmetricPlan& plan) {
    using Row = decltype(plan.rows)::value_type;
    return std::tuple(give_column(plan.rows, &Row::chunk), give_column(plan.rows, &Row::src),
                      give_column(plan.rows, &Row::direction), give_column(plan.rows, &Row::start));
}

using Planner = SymmetricPlan (*)(const Directions&, std::int32_t, const Search&);

void bind_planner(nb::module_& module, const char* name, Planner planner) {
    module.def(
        name,
        [planner](const Directions& directions, std::int32_t pieces, const Search& search) {
            return give_plan(unlocked([&] { return planner(directions, pieces, search); }));
        },
        "directions"_a, "pieces"_a, "search"_a, "Chunk, source, direction and start of each row.");
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
            nb::kw_only(), "sizes"_a, "dimension"_a, "step"_a, "resource"_a, "hold"_a,
            "duration"_a);
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
        "directions"_a, "pieces"_a, "chunk"_a, "src"_a, "direction"_a, "When each row starts.");
}

const Registration registration("symmetric", bind);

}  // namespace
}  // namespace weft::bindings
