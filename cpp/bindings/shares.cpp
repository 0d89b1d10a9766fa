#include "planners/shares/shares.h"

#include "bindings/planned.h"

namespace weft::bindings {
namespace {

using Numbers = Column<std::int32_t>;
using Offsets = Column<std::int64_t>;
using BoundHops = Value<GivenHops, Offsets, Numbers, Numbers, Numbers, Numbers>;
using BoundTrees = Value<GivenTrees, Offsets, Numbers, Offsets, Numbers, Numbers, Numbers>;

void bind(nb::module_& module) {
    BoundHops::bind(module, "GivenHops", "offsets", "links", "src", "dst", "lane").doc() =
        "See ``cpp/planners/shares/shares.h``.";
    BoundTrees::bind(module, "GivenTrees", "up_offsets", "up", "down_offsets", "down", "up_turn",
                     "down_turn")
        .doc() = "See ``cpp/planners/shares/shares.h``.";
    module.def(
        "shares",
        [](const Network& network, CostModel cost, const BoundChunks& chunks,
           const BoundHops& given, const BoundTrees& trees, const Search& search) -> Planned {
            return unlocked([&] {
                const Hops hops = routed_hops(network, given);
                const Sizes sizes = group_sizes(chunks.bytes);
                const auto times = time_hops(network, hops, cost, sizes);
                return planned(hops, plan_shares(hops, times, sizes, given.lane, trees, search),
                               [&](std::int32_t chunk) -> const HopTimes& {
                                   return times[sizes.of_chunk[chunk]];
                               });
            });
        },
        "network"_a, "cost"_a, "chunks"_a, "hops"_a, "trees"_a, "search"_a,
        "When chunks run that go by trees which are chosen already.");
}

const Registration registration("shares", bind);

}  // namespace
}  // namespace weft::bindings
