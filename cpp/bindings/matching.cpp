#include "planners/matching/matching.h"

#include "bindings/planned.h"

namespace weft::bindings {
namespace {

const Registration registration("matching", [](nb::module_& module) {
    bind_uniform_planner(module, "match", search_matching);
});

}  // namespace
}  // namespace weft::bindings
