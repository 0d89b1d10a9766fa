#include "bounds/bound.h"

#include <algorithm>

#include "bindings/values.h"
#include "bounds/capacity.h"
#include "bounds/cuts.h"
#include "bounds/hop_overheads.h"
#include "bounds/messages.h"

namespace weft::bindings {
namespace {

using BoundClasses = Value<ChunkClasses, Column<std::int32_t>, Column<std::int32_t>, Column<bool>,
                           Column<std::int64_t>, Column<std::int64_t>, std::int64_t, std::int64_t,
                           Column<std::int64_t>, Column<std::int32_t>>;

using BoundMessages =
    Value<MessageLinks, Column<ps>, Column<ps>, Column<double>, Column<std::int64_t>, Column<ps>,
          Column<ps>, Column<std::int32_t>, Column<double>>;

// A set of links. Neighbours that are alike are counted together: builders number links of one kind
// in a row, and a large network has millions of them.
struct Capacity {
    std::vector<LinkClass> link_classes;

    Capacity(const Column<std::int64_t>& opens, const Column<std::int64_t>& first,
             const Column<std::int64_t>& bandwidth, const Maybe<std::int64_t>& gap,
             const Maybe<std::int64_t>& overhead) {
        const auto& gaps = gap ? *gap : first;
        const auto& overheads = overhead ? *overhead : gaps;
        const auto columns = {&opens, &first, &gaps, &overheads, &bandwidth};
        const auto as_before = [&](std::size_t i) {
            return std::all_of(columns.begin(), columns.end(),
                               [&](const auto* c) { return (*c)(i) == (*c)(i - 1); });
        };
        for (std::size_t i = 0; i < first.size(); ++i) {
            if (i > 0 && as_before(i))
                ++link_classes.back().alike;
            else
                link_classes.push_back({opens(i), first(i), gaps(i), overheads(i), bandwidth(i)});
        }
    }
};

void bind_capacity(nb::module_& module) {
    nb::class_<Capacity>(module, "Capacity",
                         "How soon a set of links can have carried so much: see "
                         "``cpp/bounds/capacity.h``. `gap` is `first` by default, and `overhead` "
                         "is `gap`; weights are in the place of `bandwidth`.")
        .def(nb::init<const Column<std::int64_t>&, const Column<std::int64_t>&,
                      const Column<std::int64_t>&, const Maybe<std::int64_t>&,
                      const Maybe<std::int64_t>&>(),
             nb::kw_only(), "opens"_a, "first"_a, "bandwidth"_a, "gap"_a = nb::none(),
             "overhead"_a = nb::none())
        .def(
            "time_for_chunks",
            [](const Capacity& self, std::int64_t chunks, double bytes, std::int64_t largest) {
                return time_for_chunks(self.link_classes, {chunks, bytes, largest});
            },
            "chunks"_a, "bytes"_a, "largest"_a)
        .def(
            "time_for_bytes",
            [](const Capacity& self, double bytes) {
                return time_for_bytes(self.link_classes, bytes);
            },
            "bytes"_a)
        .def(
            "time_for_weight",
            [](const Capacity& self, double needed) {
                return time_for_weight(self.link_classes, needed);
            },
            "needed"_a);
}

void bind(nb::module_& module) {
    bind_capacity(module);
    module.def(
        "hop_overheads",
        [](const Network& network, CostModel cost) {
            auto found = find_hop_overheads(network, cost);
            return give_all(std::move(found.once), std::move(found.across),
                            std::vector<std::uint8_t>(found.early.begin(), found.early.end()),
                            std::vector<std::uint8_t>(found.late.begin(), found.late.end()));
        },
        "network"_a, "cost"_a, "Once, across, early and late: see ``cpp/bounds/hop_overheads.h``.");
    module.def(
        "soonest",
        [](const Network& network, CostModel cost, std::int64_t bytes,
           const Column<std::int32_t>& sources, bool backwards, bool relays) {
            return give(unlocked([&] {
                std::vector<ps> times;
                for (auto from : view(sources)) {
                    const auto row = soonest(network, cost, bytes, from, backwards, relays);
                    times.insert(times.end(), row.begin(), row.end());
                }
                return times;
            }));
        },
        "network"_a, "cost"_a, "bytes"_a, "sources"_a, "backwards"_a, "relays"_a = true,
        "A row of all nodes for each source, one after the other.");
    BoundMessages::bind(module, "MessageLinks", "known", "told", "rate", "offsets", "before",
                        "after", "table", "weights");
    module.def(
        "time_for_messages",
        [](const BoundMessages& links, double needed) { return time_for_messages(links, needed); },
        "links"_a, "needed"_a, "See ``cpp/bounds/messages.h``.");

    BoundClasses::bind(module, "ChunkClasses", "pre", "post", "reduce", "count", "bytes",
                       "smallest", "largest", "set_offsets", "set_members");
    module.def(
        "node_bound",
        [](const Network& network, CostModel cost, const BoundClasses& classes, ps enough,
           std::int64_t budget) {
            const auto bound =
                unlocked([&] { return node_bound(network, cost, classes, enough, budget); });
            return std::tuple(bound.whole_chunks, bound.any_chunks, static_cast<int>(bound.kind),
                              bound.npu, bound.other);
        },
        "network"_a, "cost"_a, "classes"_a, "enough"_a, "budget"_a,
        "For whole chunks, for any chunking, the kind of the first, its NPU, and a path's "
        "other end.");
    module.def(
        "tightest_cut",
        [](const Network& network, const Column<double>& supply, const Column<std::int32_t>& sinks,
           double seconds, std::int64_t budget) {
            const Cut cut = unlocked(
                [&] { return tightest_cut(network, view(supply), view(sinks), seconds, budget); });
            std::vector<std::int32_t> inside;
            for (std::size_t node = 0; node < cut.inside.size(); ++node)
                if (cut.inside[node]) inside.push_back(static_cast<std::int32_t>(node));
            return std::tuple(cut.seconds, give(std::move(inside)));
        },
        "network"_a, "supply"_a, "sinks"_a, "seconds"_a, "budget"_a);
}

const Registration registration("bound", bind);

}  // namespace
}  // namespace weft::bindings
