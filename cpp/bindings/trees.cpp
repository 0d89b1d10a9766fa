#include "planners/trees/trees.h"

#include "bindings/planned.h"

namespace weft::bindings {
namespace {

const Registration registration("trees", [](nb::module_& module) {
    bind_uniform_planner(
        module, "trees",
        [](const Network&, const Hops& hops, const HopTimes& times, const Chunks& chunks,
           const Search& search) { return plan_trees(hops, times, tree_problem(chunks), search); });
});

}  // namespace
}  // namespace weft::bindings
