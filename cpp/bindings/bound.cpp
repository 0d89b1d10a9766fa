#include "bounds/bound.h"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>

#include "bindings/arrays.h"
#include "bindings/bind.h"
#include "bounds/capacity.h"
#include "bounds/cuts.h"
#include "bounds/leads.h"

namespace weft::bindings {
namespace {

// Neighbours that are alike are counted together: builders number links of one kind in a row, and
// a large network has millions of them.
std::vector<Gate> gates(const Column<std::int64_t>& opens, const Column<std::int64_t>& first,
                        const Column<std::int64_t>& gap, const Column<std::int64_t>& overhead,
                        const Column<std::int64_t>& bandwidth) {
    const auto columns = {&opens, &first, &gap, &overhead, &bandwidth};
    const auto as_before = [&](std::size_t i) {
        return std::all_of(columns.begin(), columns.end(), [&](const auto* column) {
            return column->data()[i] == column->data()[i - 1];
        });
    };
    std::vector<Gate> result;
    for (std::size_t i = 0; i < first.size(); ++i) {
        if (i > 0 && as_before(i))
            ++result.back().alike;
        else
            result.push_back({opens.data()[i], first.data()[i], gap.data()[i], overhead.data()[i],
                              bandwidth.data()[i]});
    }
    return result;
}

void bind(nb::module_& module) {
    module.def(
        "serialization",
        [](std::int64_t bytes, Column<std::int64_t> bandwidth) {
            std::vector<ps> times(bandwidth.size());
            for (std::size_t i = 0; i < times.size(); ++i)
                times[i] = serialization(bytes, bandwidth.data()[i]);
            return give(std::move(times));
        },
        nb::arg("bytes"), nb::arg("bandwidth"));

    module.def(
        "time_for_chunks",
        [](Column<std::int64_t> opens, Column<std::int64_t> first, Column<std::int64_t> gap,
           Column<std::int64_t> overhead, Column<std::int64_t> bandwidth, std::int64_t chunks,
           double bytes, std::int64_t largest) {
            return time_for_chunks(gates(opens, first, gap, overhead, bandwidth),
                                   {chunks, bytes, largest});
        },
        nb::arg("opens"), nb::arg("first"), nb::arg("gap"), nb::arg("overhead"),
        nb::arg("bandwidth"), nb::arg("chunks"), nb::arg("bytes"), nb::arg("largest"));

    module.def(
        "time_for_bytes",
        [](Column<std::int64_t> opens, Column<std::int64_t> first, Column<std::int64_t> bandwidth,
           double bytes) {
            return time_for_bytes(gates(opens, first, first, first, bandwidth), bytes);
        },
        nb::arg("opens"), nb::arg("first"), nb::arg("bandwidth"), nb::arg("bytes"));

    module.def(
        "time_for_weight",
        [](Column<std::int64_t> opens, Column<std::int64_t> first, Column<std::int64_t> gap,
           Column<std::int64_t> weight, double needed) {
            return time_for_weight(gates(opens, first, gap, gap, weight), needed);
        },
        nb::arg("opens"), nb::arg("first"), nb::arg("gap"), nb::arg("weight"), nb::arg("needed"));

    module.def(
        "leads",
        [](const Network& network, CostModel cost) {
            auto found = find_leads(network, cost);
            return std::tuple(give(std::move(found.once)), give(std::move(found.across)));
        },
        nb::arg("network"), nb::arg("cost"));

    module.def(
        "soonest",
        [](const Network& network, CostModel cost, std::int64_t bytes, std::int32_t from,
           bool backwards) { return give(soonest(network, cost, bytes, from, backwards)); },
        nb::arg("network"), nb::arg("cost"), nb::arg("bytes"), nb::arg("source"),
        nb::arg("backwards"));

    module.def(
        "node_bound",
        [](const Network& network, CostModel cost, std::int64_t smallest, std::int64_t largest,
           Column<std::int32_t> pre, Column<std::int32_t> post, Column<bool> reduce,
           Column<std::int64_t> count, Column<std::int64_t> total_bytes,
           Column<std::int64_t> set_offsets, Column<std::int32_t> set_members, ps enough,
           std::int64_t budget) {
            nb::gil_scoped_release release;
            const ChunkClasses classes{
                copy(pre),
                copy(post),
                std::vector<bool>(reduce.data(), reduce.data() + reduce.size()),
                copy(count),
                copy(total_bytes),
                smallest,
                largest,
                rows(set_offsets, set_members)};
            const auto bound = node_bound(network, cost, classes, enough, budget);
            return std::tuple(bound.whole_chunks, bound.any_chunks, static_cast<int>(bound.kind));
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("smallest"), nb::arg("largest"),
        nb::arg("pre"), nb::arg("post"), nb::arg("reduce"), nb::arg("count"),
        nb::arg("total_bytes"), nb::arg("set_offsets"), nb::arg("set_members"), nb::arg("enough"),
        nb::arg("budget"));

    module.def(
        "tightest_cut",
        [](const Network& network, Column<double> supply, Column<std::int32_t> sinks,
           double seconds, std::int64_t budget) {
            Cut cut;
            {
                nb::gil_scoped_release release;
                cut = tightest_cut(network, view(supply), view(sinks), seconds, budget);
            }
            std::vector<std::int32_t> inside;
            for (std::size_t node = 0; node < cut.inside.size(); ++node)
                if (cut.inside[node]) inside.push_back(static_cast<std::int32_t>(node));
            return std::tuple(cut.seconds, give(std::move(inside)));
        },
        nb::arg("network"), nb::arg("supply"), nb::arg("sinks"), nb::arg("seconds"),
        nb::arg("budget"));
}

const Registration registration("bound", bind);

}  // namespace
}  // namespace weft::bindings
