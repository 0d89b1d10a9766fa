#include "planners/periodic/periodic.h"

#include "bindings/names.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    bind_members<&PeriodicTrees::period, &PeriodicTrees::offsets, &PeriodicTrees::link,
                 &PeriodicTrees::slot, &PeriodicTrees::reduce, &PeriodicTrees::chunks>(
        nb::class_<PeriodicTrees>(module, "PeriodicTrees",
                                  "The rows of each tree's first chunk; `period` is in slots, "
                                  "`chunks` how many chunks each tree carries."));
    module.def(
        "plan_periodic",
        [](const Network& network, const Column<std::int32_t>& members, std::int64_t lag,
           std::int64_t chunks, const Search& search) {
            return plan_periodic({network, view(members), lag, chunks}, search);
        },
        "network"_a, "members"_a, "lag"_a, "chunks"_a, "search"_a,
        nb::call_guard<nb::gil_scoped_release>());
}

const Registration registration("periodic", bind);

}  // namespace
}  // namespace weft::bindings
