#include "engine/forwarding.h"

#include "bindings/bind.h"
#include "bindings/values.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    const auto offsets = [](const Forwarded& made) -> const auto& { return made.routes.offsets; };
    const auto links = [](const Forwarded& made) -> const auto& { return made.routes.items; };
    nb::class_<Forwarded>(module, "Forwarded",
                          "Messages cut into hops; `lost` is the first that has no path, or -1.")
        .def_prop_ro("hop_offsets", column<Forwarded>(&Forwarded::hop_offsets))
        .def_prop_ro("src", column<Forwarded>(&Forwarded::src))
        .def_prop_ro("dst", column<Forwarded>(&Forwarded::dst))
        .def_prop_ro("route", column<Forwarded>(&Forwarded::route))
        .def_prop_ro("route_offsets", column<Forwarded>(offsets))
        .def_prop_ro("route_links", column<Forwarded>(links))
        .def_ro("lost", &Forwarded::lost);
    module.def(
        "forward",
        [](const Network& network, CostModel cost, const BoundChunks& chunks,
           const Column<std::int32_t>& src, const Column<std::int32_t>& dst,
           const Column<std::int32_t>& reach) {
            return forward(network, cost, view(src), view(dst), view(reach), chunks);
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("chunks"), nb::arg("src"), nb::arg("dst"),
        nb::arg("reach"), nb::call_guard<nb::gil_scoped_release>());
    module.def(
        "nearest",
        [](const Network& network, CostModel cost, const BoundChunks& chunks,
           const Column<std::int64_t>& chunk, const Column<std::int32_t>& taker) {
            return give(
                unlocked([&] { return nearest(network, cost, chunks, view(chunk), view(taker)); }));
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("chunks"), nb::arg("chunk"), nb::arg("taker"),
        "The holder with the fewest hops to go; -1 if none has a way.");
}

const Registration registration("forwarding", bind);

}  // namespace
}  // namespace weft::bindings
