#include "traces/flow.h"

#include "bindings/names.h"
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
    bind_enum<Direction>(module, "TraceDirection");
    bind_enum<Fault>(module, "TraceFault");
    bind_members<&Flow::fault, &Flow::node, &Flow::found, &Flow::offsets, &Flow::parts,
                 &Flow::part_npu, &Flow::part_bytes, &Flow::node_part, &Flow::complete,
                 &Flow::contributors>(nb::class_<Flow>(
        module, "TraceFlow",
        "What messages carry, or at which node that cannot be said. `offsets` are of the parts of "
        "each message."));
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
            "rank"_a, "ranks"_a, "direction"_a, "parts"_a,
            nb::call_guard<nb::gil_scoped_release>());
}

const Registration registration("trace_flow", bind);

}  // namespace
}  // namespace weft::bindings
