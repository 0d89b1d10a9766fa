#include "engine/forwarding.h"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/arrays.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    module.def(
        "forward",
        [](const Network& network, CostModel cost, Column<std::int32_t> src,
           Column<std::int32_t> dst, Column<std::int32_t> reach, std::int64_t largest,
           Column<std::int64_t> set_offsets, Column<std::int32_t> set_members) {
            Forwarded made;
            {
                nb::gil_scoped_release release;
                const Rows sets = rows(set_offsets, set_members);
                made = forward(network, cost, view(src), view(dst), view(reach), largest, sets);
            }
            return std::tuple(give(std::move(made.hop_offsets)), give(std::move(made.src)),
                              give(std::move(made.dst)), give(std::move(made.route)),
                              give(std::move(made.routes.offsets)),
                              give(std::move(made.routes.items)), made.lost);
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("src"), nb::arg("dst"), nb::arg("reach"),
        nb::arg("largest"), nb::arg("set_offsets"), nb::arg("set_members"));

    module.def(
        "nearest",
        [](const Network& network, CostModel cost, Column<std::int32_t> holders,
           Column<std::int32_t> taker, Column<std::int32_t> reach, std::int64_t largest,
           Column<std::int64_t> set_offsets, Column<std::int32_t> set_members) {
            std::vector<std::int32_t> found;
            {
                nb::gil_scoped_release release;
                const Rows sets = rows(set_offsets, set_members);
                found =
                    nearest(network, cost, view(holders), view(taker), view(reach), largest, sets);
            }
            return give(std::move(found));
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("holders"), nb::arg("taker"), nb::arg("reach"),
        nb::arg("largest"), nb::arg("set_offsets"), nb::arg("set_members"));
}

const Registration registration("forwarding", bind);

}  // namespace
}  // namespace weft::bindings
