#include "planners/multitree/multitree.h"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/arrays.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    module.def(
        "grow_trees",
        [](const Network& network, CostModel cost, std::int64_t largest, Column<std::int32_t> roots,
           Column<std::int32_t> group, std::int32_t reach, Column<std::int64_t> set_offsets,
           Column<std::int32_t> set_members) {
            GrownTrees made;
            {
                nb::gil_scoped_release release;
                const Rows sets = rows(set_offsets, set_members);
                made = grow_trees(network, cost, largest, view(roots), view(group), reach, sets);
            }
            return std::tuple(give(std::move(made.tree)), give(std::move(made.src)),
                              give(std::move(made.dst)), give(std::move(made.slot)), made.lost);
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("largest"), nb::arg("roots"), nb::arg("group"),
        nb::arg("reach"), nb::arg("set_offsets"), nb::arg("set_members"));
}

const Registration registration("multitree", bind);

}  // namespace
}  // namespace weft::bindings
