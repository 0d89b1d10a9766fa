#include "planners/trees/trees.h"

#include "bindings/planned.h"

namespace weft::bindings {
namespace {

const Registration registration("trees", [](nb::module_& module) {
    bind_uniform_planner(module, "trees", plan_trees);
});

}  // namespace
}  // namespace weft::bindings
