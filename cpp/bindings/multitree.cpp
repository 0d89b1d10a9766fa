#include "planners/multitree/multitree.h"

#include "bindings/names.h"
#include "bindings/values.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    bind_members<&GrownTrees::tree, &GrownTrees::src, &GrownTrees::dst, &GrownTrees::slot,
                 &GrownTrees::lost>(nb::class_<GrownTrees>(
        module, "GrownTrees", "The edges of all trees; `lost` is the first tree cut off, or -1."));
    module.def(
        "grow_trees",
        [](const Network& network, CostModel cost, const BoundChunks& chunks,
           const Column<std::int32_t>& group) {
            return grow_trees(network, cost, chunks, view(group));
        },
        "network"_a, "cost"_a, "chunks"_a, "group"_a, nb::call_guard<nb::gil_scoped_release>());
}

const Registration registration("multitree", bind);

}  // namespace
}  // namespace weft::bindings
