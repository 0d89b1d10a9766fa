#include "planners/repair/repair.h"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/arrays.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    module.def(
        "complete",
        [](const Network& network, Column<std::int64_t> offsets, Column<std::int32_t> chunks,
           Column<std::int64_t> hold, Column<std::int64_t> duration, ps begin, Progress& progress) {
            Completion found;
            {
                nb::gil_scoped_release release;
                found = complete(network, {view(offsets), view(chunks)}, view(hold), view(duration),
                                 begin, progress);
            }
            return std::tuple(give(std::move(found.chunk)), give(std::move(found.link)),
                              give(std::move(found.start)));
        },
        nb::arg("network"), nb::arg("offsets"), nb::arg("chunks"), nb::arg("hold"),
        nb::arg("duration"), nb::arg("begin"), nb::arg("progress"));
}

const Registration registration("repair", bind);

}  // namespace
}  // namespace weft::bindings
