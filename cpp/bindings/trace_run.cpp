#include "traces/run.h"

#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>

#include "bindings/arrays.h"
#include "bindings/bytes.h"
#include "bindings/names.h"
#include "traces/astra_carrier.h"
#include "traces/chakra_read.h"
#include "traces/id_table.h"
#include "traces/network_carrier.h"

namespace weft::bindings {
namespace {

// What came of a run, with the traces and the network it ran on.
struct Ran {
    const RunGraph& graph;
    std::unique_ptr<Carrier> carrier;
    TraceOutcome outcome;
    ps step;  // of the carrier's clock, in picoseconds
};

Ran run(const RunGraph& graph, RunRules rules, std::unique_ptr<Carrier> carrier) {
    const RunScale scale = scale_of(rules);
    TraceOutcome outcome = run_trace(graph, *carrier, scale);
    return {graph, std::move(carrier), std::move(outcome), scale.step};
}

std::vector<std::int32_t> npus_of(const RunGraph& graph, const Column<std::int32_t>& npus,
                                  std::int64_t there_are) {
    if (npus.size() != static_cast<std::size_t>(graph.ranks()))
        throw std::invalid_argument("one NPU a rank is needed");
    for (const auto npu : view(npus))
        if (npu < 0 || npu >= there_are) throw std::invalid_argument("there is no such NPU");
    return copy(npus);
}

Ran run_astra(const RunGraph& graph, bool plain, bool aware, const Column<std::int32_t>& npus,
              const std::vector<AstraDimension>& dimensions) {
    std::int64_t there_are = 1;
    for (const auto& dimension : dimensions) there_are *= dimension.size;
    if (dimensions.empty() || (aware && dimensions.size() != 1))
        throw std::invalid_argument("the congestion-aware network has one dimension");
    auto devices = npus_of(graph, npus, there_are);
    nb::gil_scoped_release free;
    auto carrier = aware ? astra_aware(graph, std::move(devices), dimensions[0])
                         : astra_unaware(graph, std::move(devices), dimensions);
    return run(graph, plain ? RunRules::plain : RunRules::custom, std::move(carrier));
}

Ran run_weft(const RunGraph& graph, const Network& network, CostModel cost,
             const Column<std::int32_t>& npus) {
    auto devices = npus_of(graph, npus, network.npus);
    nb::gil_scoped_release free;
    return run(graph, RunRules::weft, network_carrier(graph, std::move(devices), network, cost));
}

auto links(const Ran& ran) {
    LinkUse use = ran.carrier->use();
    for (auto& busy : use.busy) busy *= ran.step;
    return give_all(std::move(use.src), std::move(use.dst), std::move(use.busy));
}

auto stuck(const Ran& ran) {
    std::vector<std::tuple<std::uint32_t, std::optional<std::uint32_t>>> found;
    for (const auto& [recv, send] : ran.outcome.stuck)
        found.emplace_back(recv, send == no_node ? std::nullopt : std::optional(send));
    return found;
}

void bind_graph(nb::module_& module) {
    bind_enum<RunRules>(module, "RunRules");
    nb::class_<RankNodes>(module, "RankNodes")
        .def("__len__", &RankNodes::size)
        .def_ro("collective", &RankNodes::collective);
    module.def(
        "read_rank",
        [](nb::bytes file, std::int32_t rank, std::int32_t ranks, RunRules rules) {
            return unlocked([&, text = text_of(file)] {
                return pack_rank(chakra::read_trace(text, false).nodes, rank, ranks, rules);
            });
        },
        "file"_a, "rank"_a, "ranks"_a, "rules"_a);
    nb::class_<RunGraph>(module, "RunGraph",
                         "The nodes of all ranks, in order of rank, then of id; taken out of the "
                         "parts, which are empty then.")
        .def(
            "__init__",
            [](RunGraph* self, std::vector<RankNodes*> parts) {
                nb::gil_scoped_release free;
                new (self) RunGraph(parts);
            },
            "parts"_a)
        .def("__len__", &RunGraph::size)
        .def_prop_ro("ranks", &RunGraph::ranks)
        .def_prop_ro("firsts", column<RunGraph>(&RunGraph::firsts))
        .def("ids", [](const RunGraph& graph) { return give(graph.ids()); })
        .def("rank", &RunGraph::rank_of, "node"_a)
        .def("id", &RunGraph::id_of, "node"_a)
        .def(
            "message",
            [](const RunGraph& graph, std::uint32_t node) {
                const Channel& channel = graph.channel_of(node);
                return std::tuple(channel.src, channel.dst, channel.tag, channel.bytes);
            },
            "node"_a)
        .def_prop_ro("kind", column<RunGraph>(&RunGraph::kind));
}

void bind_run(nb::module_& module) {
    bind_enum<AstraShape>(module, "AstraShape");
    nb::class_<AstraDimension>(module, "AstraDimension")
        .def(nb::init<AstraShape, std::int32_t, double, double>(), "shape"_a, "size"_a,
             "bandwidth"_a, "latency"_a);
    nb::class_<Ran>(module, "TraceRun",
                    "When nodes and ranks started and ended, in picoseconds; -1 for never.")
        .def_prop_ro("start", column<Ran>(&Ran::outcome, &TraceOutcome::start))
        .def_prop_ro("end", column<Ran>(&Ran::outcome, &TraceOutcome::end))
        .def_prop_ro("finish", column<Ran>(&Ran::outcome, &TraceOutcome::finish))
        .def_prop_ro("links", &links, nb::rv_policy::reference)
        .def_prop_ro("stuck", &stuck)
        .def(
            "alone",
            [](const Ran& ran, std::uint32_t node) { return ran.carrier->alone(node) * ran.step; },
            "node"_a)
        .def("critical_chain",
             [](const Ran& ran) { return give(critical_chain(ran.graph, ran.outcome)); });
    module.attr("orders_as_astra_sim") = orders_as_astra_sim;
    module.def("run_astra_traces", &run_astra, "graph"_a, "plain"_a, "aware"_a, "npus"_a,
               "dimensions"_a, nb::keep_alive<0, 1>());
    module.def("run_traces", &run_weft, "graph"_a, "network"_a, "cost"_a, "npus"_a,
               nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>());
}

void bind(nb::module_& module) {
    bind_graph(module);
    bind_run(module);
}

const Registration registration("trace_run", bind);

}  // namespace
}  // namespace weft::bindings
