#include "bounds/flow.h"

#include "bindings/values.h"

namespace weft::bindings {
namespace {

using BoundFlows = Value<Flows, Column<std::int64_t>, Column<std::int32_t>, Column<std::int64_t>>;

void bind(nb::module_& module) {
    BoundFlows::bind(module, "Flows", "offsets", "dst", "amount");
    module.def(
        "shortest_routing",
        [](const Network& network, const Column<std::int64_t>& lengths, const BoundFlows& flows,
           int threads) {
            Routing routing =
                unlocked([&] { return shortest_routing(network, view(lengths), flows, threads); });
            return std::tuple(routing.total, give(std::move(routing.loads)));
        },
        "network"_a, "lengths"_a, "flows"_a, "threads"_a,
        "The sum of amount times distance, and the load of each link.");
    module.def(
        "balance",
        [](const Network& network, const Column<double>& capacity, const BoundFlows& flows,
           double enough, std::int64_t budget, int threads) {
            Balance found = unlocked(
                [&] { return balance(network, view(capacity), flows, enough, budget, threads); });
            return give_all(std::move(found.lengths), std::move(found.loads));
        },
        "network"_a, "capacity"_a, "flows"_a, "enough"_a, "budget"_a, "threads"_a,
        "The length, and the seconds, of each link.");
}

const Registration registration("flow", bind);

}  // namespace
}  // namespace weft::bindings
