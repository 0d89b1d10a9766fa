#include "planners/periodic/periodic.h"

#include "bindings/arrays.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    nb::class_<PeriodicTrees>(module, "PeriodicTrees",
                              "The rows of each tree's first chunk; `period` is in slots.")
        .def_ro("period", &PeriodicTrees::period)
        .def_prop_ro("offsets", column<PeriodicTrees>(&PeriodicTrees::offsets))
        .def_prop_ro("link", column<PeriodicTrees>(&PeriodicTrees::link))
        .def_prop_ro("slot", column<PeriodicTrees>(&PeriodicTrees::slot))
        .def_prop_ro("reduce", column<PeriodicTrees, bool>(&PeriodicTrees::reduce))
        .def_prop_ro("chunks", column<PeriodicTrees>(&PeriodicTrees::chunks),
                     "How many chunks each tree carries.");
    module.def(
        "plan_periodic",
        [](const Network& network, const Column<std::int32_t>& members, std::int64_t lag,
           std::int64_t chunks, const Search& search) {
            return plan_periodic({network, view(members), lag, chunks}, search);
        },
        nb::arg("network"), nb::arg("members"), nb::arg("lag"), nb::arg("chunks"),
        nb::arg("search"), nb::call_guard<nb::gil_scoped_release>());
}

const Registration registration("periodic", bind);

}  // namespace
}  // namespace weft::bindings
