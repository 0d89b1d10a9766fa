#include "planners/gateways/gateways.h"

#include "bindings/planned.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    module.def(
        "gateways",
        [](const Network& network, CostModel cost, const BoundChunks& chunks,
           const Column<std::int32_t>& box, bool one_shot, const Search& search) {
            std::vector<std::int32_t> reads, writes;
            Planned made = unlocked([&] {
                const Hops hops = find_hops(network, cost, chunks.largest());
                const Sizes sizes = group_sizes(chunks.bytes);
                const auto times = time_hops(network, hops, cost, sizes);
                auto rows = plan_gateways(hops, times, chunks, sizes, view(box), one_shot, search);
                for (auto& kind : rows.reduce) {
                    reads.push_back(kind >> 1 & 3);
                    writes.push_back(kind >> 3);
                    kind &= 1;
                }
                return planned(hops, std::move(rows), [&](std::int32_t chunk) -> const HopTimes& {
                    return times[sizes.of_chunk[chunk]];
                });
            });
            return std::tuple(std::move(made), give(std::move(reads)), give(std::move(writes)));
        },
        "network"_a, "cost"_a, "chunks"_a, "box"_a, "one_shot"_a, "search"_a,
        "The plan, and which place each row reads and writes: see "
        "``cpp/planners/gateways/gateways.h``.");
}

const Registration registration("gateways", bind);

}  // namespace
}  // namespace weft::bindings
