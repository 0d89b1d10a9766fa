#include "traces/flow.h"

#include "bindings/arrays.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

using namespace trace;

// The graph with the arrays it looks at, and how deep its nodes lie.
struct BoundTrace {
    Column<std::int32_t> npu;
    Column<std::int64_t> offsets, waits;
    Column<bool> carries;
    Column<std::int64_t> message, send, recv, bytes;
    Levels levels = {};

    Graph graph() const {
        return {view(npu),     view(offsets), view(waits), view(carries),
                view(message), view(send),    view(recv),  view(bytes)};
    }
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
    nb::class_<Flow>(module, "TraceFlow")
        .def_ro("fault", &Flow::fault)
        .def_ro("node", &Flow::node)
        .def_ro("found", &Flow::found)
        .def("take", [](Flow& flow) {
            const std::vector<std::uint8_t> complete(flow.complete.begin(), flow.complete.end());
            return nb::make_tuple(give(std::move(flow.offsets)), give(std::move(flow.parts)),
                                  give(std::move(flow.part_npu)), give(std::move(flow.part_bytes)),
                                  give(std::move(flow.node_part)),
                                  give(std::vector<std::uint8_t>(complete)),
                                  give(std::move(flow.contributors)));
        });
    nb::class_<BoundTrace>(module, "TraceGraph")
        .def(
            "__init__",
            [](BoundTrace* self, Column<std::int32_t> npu, Column<std::int64_t> offsets,
               Column<std::int64_t> waits, Column<bool> carries, Column<std::int64_t> message,
               Column<std::int64_t> send, Column<std::int64_t> recv, Column<std::int64_t> bytes) {
                new (self) BoundTrace{npu, offsets, waits, carries, message, send, recv, bytes};
                nb::gil_scoped_release release;
                self->levels = find_levels(self->graph());
            },
            nb::kw_only(), nb::arg("npu"), nb::arg("offsets"), nb::arg("waits"), nb::arg("carries"),
            nb::arg("message"), nb::arg("send"), nb::arg("recv"), nb::arg("bytes"))
        .def_prop_ro("stuck", [](const BoundTrace& self) { return self.levels.stuck; })
        .def("levels", [](const BoundTrace& self) { return give(std::vector(self.levels.level)); })
        .def(
            "follow",
            [](const BoundTrace& self, Column<std::int32_t> rank, std::int32_t ranks,
               Direction direction, bool parts) {
                nb::gil_scoped_release release;
                return follow(self.graph(), self.levels, view(rank), ranks, direction, parts);
            },
            nb::arg("rank"), nb::arg("ranks"), nb::arg("direction"), nb::arg("parts"));
}

const Registration registration("trace_flow", bind);

}  // namespace
}  // namespace weft::bindings
