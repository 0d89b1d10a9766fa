#include "traces/flow.h"

#include "bindings/bind.h"
#include "bindings/values.h"

namespace weft::bindings {
namespace {

using namespace trace;

// The graph, and how deep its nodes lie.
struct BoundTrace : Value<Graph, Column<std::int32_t>, Column<std::int64_t>, Column<std::int64_t>,
                          Column<bool>, Column<std::int64_t>, Column<std::int64_t>,
                          Column<std::int64_t>, Column<std::int64_t>> {
    using Value::Value;
    Levels levels = unlocked([this] { return find_levels(*this); });
};

void bind(nb::module_& module) {
    nb::enum_<Direction>(module, "TraceDirection")
        .value("spread", Direction::spread)
        .value("collect", Direction::collect)
        .value("collect_and_spread", Direction::collect_and_spread);
    nb::enum_<Fault>(module, "TraceFault")
        .value("none", Fault::none)
        .value("mixed_source", Fault::mixed_source)
        .value("mixed_use", Fault::mixed_use)
        .value("unlike", Fault::unlike)
        .value("too_many", Fault::too_many);
    nb::class_<Flow>(module, "TraceFlow",
                     "What messages carry, or at which node that cannot be said.")
        .def_ro("fault", &Flow::fault)
        .def_ro("node", &Flow::node)
        .def_ro("found", &Flow::found)
        .def_prop_ro("offsets", column<Flow>(&Flow::offsets), "Of the parts of each message.")
        .def_prop_ro("parts", column<Flow>(&Flow::parts))
        .def_prop_ro("part_npu", column<Flow>(&Flow::part_npu))
        .def_prop_ro("part_bytes", column<Flow>(&Flow::part_bytes))
        .def_prop_ro("node_part", column<Flow>(&Flow::node_part))
        .def_prop_ro("complete", column<Flow, bool>(&Flow::complete))
        .def_prop_ro("contributors", column<Flow>(&Flow::contributors));
    BoundTrace::bind<BoundTrace>(module, "TraceGraph", "npu", "offsets", "waits", "carries",
                                 "message", "send", "recv", "bytes")
        .def_prop_ro("stuck", [](const BoundTrace& self) { return self.levels.stuck; })
        .def("levels", [](const BoundTrace& self) { return give(std::vector(self.levels.level)); })
        .def(
            "follow",
            [](const BoundTrace& self, const Column<std::int32_t>& rank, std::int32_t ranks,
               Direction direction, bool parts) {
                return follow(self, self.levels, view(rank), ranks, direction, parts);
            },
            nb::arg("rank"), nb::arg("ranks"), nb::arg("direction"), nb::arg("parts"),
            nb::call_guard<nb::gil_scoped_release>());
}

const Registration registration("trace_flow", bind);

}  // namespace
}  // namespace weft::bindings
