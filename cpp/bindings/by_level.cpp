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
               Column<std::int32_t> resource, Column<std::int64_t> begin, Column<std::int64_t> same,
               Column<std::int64_t> other, Column<std::int32_t> turns) {
                new (self) MoveTypes{copy(duration), copy(offsets), copy(resource), copy(begin),
                                     copy(same),     copy(other),   copy(turns)};
            },
            nb::kw_only(), "duration"_a, "offsets"_a, "resource"_a, "begin"_a, "same"_a, "other"_a,
            "turns"_a);
    nb::class_<Lane>(module, "Lane", "See ``cpp/planners/by_level/by_level.h``.")
        .def(
            "__init__",
            [](Lane* self, Column<std::int32_t> size, Column<bool> scatter, Column<bool> ring,
               Column<std::int32_t> first, Column<std::int32_t> there, Column<std::int32_t> back,
               std::int32_t pieces, bool sums, bool copies, bool exchange, const MoveTypes& types) {
                new (self) Lane{copy(size),  flags(scatter), flags(ring), copy(first),
                                copy(there), copy(back),     pieces,      sums,
                                copies,      exchange,       types};
            },
            nb::kw_only(), "size"_a, "scatter"_a, "ring"_a, "first"_a, "there"_a, "back"_a,
            "pieces"_a, "sums"_a, "copies"_a, "exchange"_a, "types"_a);
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
