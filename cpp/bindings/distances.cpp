#include "base/distances.h"

#include <stdexcept>

#include "bindings/arrays.h"

namespace weft::bindings {

namespace {

void check(const Network& network, std::span<const std::int32_t> nodes) {
    for (auto node : nodes)
        if (node < 0 || node >= network.nodes()) throw std::out_of_range("no such node");
}

void bind(nb::module_& module) {
    module.def(
        "distances",
        [](const Network& network, std::int32_t source, bool reverse) {
            check(network, {&source, 1});
            return give(unlocked([&] { return distances(network, source, reverse); }));
        },
        "network"_a, "source"_a, "reverse"_a = false);
    module.def(
        "longest_path",
        [](const Network& network, const Column<std::int32_t>& sources,
           const Column<std::int32_t>& targets, std::int64_t budget) {
            check(network, view(sources));
            check(network, view(targets));
            const Reach reach = unlocked(
                [&] { return longest_path(network, view(sources), view(targets), budget); });
            return std::tuple(reach.farthest, reach.sources);
        },
        "network"_a, "sources"_a, "targets"_a, "budget"_a);
}

const Registration registration("distances", bind);

}  // namespace
}  // namespace weft::bindings
