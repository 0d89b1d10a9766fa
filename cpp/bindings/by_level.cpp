#include "planners/by_level/by_level.h"

#include <nanobind/stl/vector.h>

#include "bindings/arrays.h"

namespace weft::bindings {
namespace {

std::vector<std::uint8_t> flags(const Column<bool>& column) {
    const auto values = view(column);
    return {values.begin(), values.end()};
}

void bind(nb::module_& module) {
    nb::class_<MoveTypes>(module, "MoveTypes", "See ``cpp/planners/by_level/by_level.h``.")
        .def(
            "__init__",
            [](MoveTypes* self, Column<std::int64_t> duration, Column<std::int64_t> offsets,
               Column<std::int32_t> resource, Column<std::int64_t> hold) {
                new (self) MoveTypes{copy(duration), copy(offsets), copy(resource), copy(hold)};
            },
            nb::kw_only(), "duration"_a, "offsets"_a, "resource"_a, "hold"_a);
    nb::class_<Lane>(module, "Lane", "See ``cpp/planners/by_level/by_level.h``.")
        .def(
            "__init__",
            [](Lane* self, Column<std::int32_t> size, Column<bool> scatter, Column<bool> ring,
               Column<std::int32_t> type, std::int32_t pieces, bool sums, bool copies,
               const MoveTypes& types) {
                new (self) Lane{copy(size), flags(scatter), flags(ring), copy(type),
                                pieces,     sums,           copies,      types};
            },
            nb::kw_only(), "size"_a, "scatter"_a, "ring"_a, "type"_a, "pieces"_a, "sums"_a,
            "copies"_a, "types"_a);
    module.def(
        "compose",
        [](const std::vector<Lane>& lanes, std::int32_t resources, std::int32_t rule,
           Progress& progress) {
            auto made = unlocked(
                [&] { return compose(lanes, resources, static_cast<Rule>(rule), progress); });
            return std::tuple(give(std::move(made.ready)), give(std::move(made.start)), made.time);
        },
        "lanes"_a, "resources"_a, "rule"_a, "progress"_a,
        "Of each move: when what it sends is there, when it starts; and when the last arrives.");
}

const Registration registration("by_level", bind);

}  // namespace
}  // namespace weft::bindings
