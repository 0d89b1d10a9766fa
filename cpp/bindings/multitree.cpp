#include "planners/multitree/multitree.h"

#include "bindings/bind.h"
#include "bindings/values.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    nb::class_<GrownTrees>(module, "GrownTrees",
                           "The edges of all trees; `lost` is the first tree cut off, or -1.")
        .def_prop_ro("tree", column<GrownTrees>(&GrownTrees::tree))
        .def_prop_ro("src", column<GrownTrees>(&GrownTrees::src))
        .def_prop_ro("dst", column<GrownTrees>(&GrownTrees::dst))
        .def_prop_ro("slot", column<GrownTrees>(&GrownTrees::slot))
        .def_ro("lost", &GrownTrees::lost);
    module.def(
        "grow_trees",
        [](const Network& network, CostModel cost, const BoundChunks& chunks,
           const Column<std::int32_t>& group) {
            return grow_trees(network, cost, chunks, view(group));
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("chunks"), nb::arg("group"),
        nb::call_guard<nb::gil_scoped_release>());
}

const Registration registration("multitree", bind);

}  // namespace
}  // namespace weft::bindings
