#include "engine/forwarding.h"

#include "bindings/names.h"
#include "bindings/values.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    bind_members<&Forwarded::hop_offsets, &Forwarded::src, &Forwarded::dst, &Forwarded::route,
                 &Forwarded::lost>(
        nb::class_<Forwarded>(
            module, "Forwarded",
            "Messages cut into hops; `lost` is the first that has no path, or -1."))
        .def_prop_ro("route_offsets", column<Forwarded>(&Forwarded::routes, &Rows::offsets))
        .def_prop_ro("route_links", column<Forwarded>(&Forwarded::routes, &Rows::items));
    module.def(
        "forward",
        [](const Network& network, CostModel cost, const BoundChunks& chunks,
           const Column<std::int32_t>& src, const Column<std::int32_t>& dst,
           const Column<std::int32_t>& reach) {
            return forward(network, cost, view(src), view(dst), view(reach), chunks);
        },
        "network"_a, "cost"_a, "chunks"_a, "src"_a, "dst"_a, "reach"_a,
        nb::call_guard<nb::gil_scoped_release>());
    module.def(
        "nearest",
        [](const Network& network, CostModel cost, const BoundChunks& chunks,
           const Column<std::int64_t>& chunk, const Column<std::int32_t>& taker) {
            return give(
                unlocked([&] { return nearest(network, cost, chunks, view(chunk), view(taker)); }));
        },
        "network"_a, "cost"_a, "chunks"_a, "chunk"_a, "taker"_a,
        "The holder with the fewest hops to go; -1 if none has a way.");
}

const Registration registration("forwarding", bind);

}  // namespace
}  // namespace weft::bindings
