#include "direct.h"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.h"
#include "bind.h"

namespace weft::bindings {

void bind_direct(nb::module_& module) {
    module.def(
        "direct",
        [](const Network& network, CostModel cost, Column<std::int32_t> holders,
           Column<std::int32_t> taker, Column<std::int32_t> reach, Column<std::int64_t> bytes,
           Column<std::int64_t> set_offsets, Column<std::int32_t> set_members) {
            DirectRows sent;
            {
                nb::gil_scoped_release release;
                const Rows sets = rows(set_offsets, set_members);
                sent = send_direct(network, cost,
                                   {view(holders), view(taker), view(reach), view(bytes), sets});
            }
            return std::tuple(give(std::move(sent.message)), give(std::move(sent.src)),
                              give(std::move(sent.dst)), give(std::move(sent.route)),
                              give(std::move(sent.start)), give(std::move(sent.end)),
                              give(std::move(sent.routes.offsets)),
                              give(std::move(sent.routes.items)), sent.lost);
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("holders"), nb::arg("taker"),
        nb::arg("reach"), nb::arg("bytes"), nb::arg("set_offsets"), nb::arg("set_members"));
}

}  // namespace weft::bindings
