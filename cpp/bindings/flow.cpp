#include "bounds/flow.h"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/arrays.h"
#include "bindings/bind.h"
#include "bounds/flow_balance.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    module.def(
        "shortest_routing",
        [](const Network& network, Column<std::int64_t> lengths, Column<std::int64_t> offsets,
           Column<std::int32_t> dst, Column<std::int64_t> amount, int threads) {
            Routing routing;
            {
                nb::gil_scoped_release release;
                routing = shortest_routing(network, view(lengths),
                                           {view(offsets), view(dst), view(amount)}, threads);
            }
            return std::tuple(routing.total, give(std::move(routing.loads)));
        },
        nb::arg("network"), nb::arg("lengths"), nb::arg("offsets"), nb::arg("dst"),
        nb::arg("amount"), nb::arg("threads"));

    module.def(
        "balance",
        [](const Network& network, Column<double> capacity, Column<std::int64_t> offsets,
           Column<std::int32_t> dst, Column<std::int64_t> amount, double enough,
           std::int64_t budget, int threads) {
            Balance found;
            {
                nb::gil_scoped_release release;
                found = balance(network, view(capacity), {view(offsets), view(dst), view(amount)},
                                enough, budget, threads);
            }
            return std::tuple(give(std::move(found.lengths)), give(std::move(found.loads)));
        },
        nb::arg("network"), nb::arg("capacity"), nb::arg("offsets"), nb::arg("dst"),
        nb::arg("amount"), nb::arg("enough"), nb::arg("budget"), nb::arg("threads"));
}

const Registration registration("flow", bind);

}  // namespace
}  // namespace weft::bindings
