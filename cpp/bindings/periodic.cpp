#include "planners/periodic/periodic.h"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/arrays.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    module.def(
        "plan_periodic",
        [](const Network& network, Column<std::int32_t> members, std::int64_t lag,
           std::int64_t chunks, std::uint64_t seed, int threads, Progress& progress) {
            PeriodicTrees made;
            {
                nb::gil_scoped_release release;
                made =
                    plan_periodic({network, view(members), lag, chunks}, seed, threads, progress);
            }
            return std::tuple(made.period, give(std::move(made.offsets)),
                              give(std::move(made.link)), give(std::move(made.slot)),
                              give(std::move(made.reduce)), give(std::move(made.chunks)));
        },
        nb::arg("network"), nb::arg("members"), nb::arg("lag"), nb::arg("chunks"), nb::arg("seed"),
        nb::arg("threads"), nb::arg("progress"));
}

const Registration registration("periodic", bind);

}  // namespace
}  // namespace weft::bindings
