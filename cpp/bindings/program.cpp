#include "programs/program.h"

#include <nanobind/stl/vector.h>

#include "bindings/arrays.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

using program::Woven;

std::span<const std::uint8_t> bytes_of(const Column<bool>& column) {
    return {reinterpret_cast<const std::uint8_t*>(column.data()), column.size()};
}

nb::dict columns(Woven& woven) {
    nb::dict found;
    found["chunk"] = give(std::move(woven.chunk));
    found["src"] = give(std::move(woven.src));
    found["dst"] = give(std::move(woven.dst));
    found["reduce"] = give(std::move(woven.reduce));
    found["src_place"] = give(std::move(woven.src_place));
    found["dst_place"] = give(std::move(woven.dst_place));
    found["action"] = give(std::move(woven.action));
    found["before"] = give(std::move(woven.before));
    found["dep_offsets"] = give(std::move(woven.dep_offsets));
    found["deps"] = give(std::move(woven.deps));
    return found;
}

Woven weave(std::int64_t events, Column<std::int32_t> src, Column<std::int32_t> dst,
            Column<bool> reduce, Column<std::int64_t> chain_offsets,
            Column<std::int64_t> chain_events, Column<std::int64_t> edge_from,
            Column<std::int64_t> edge_to, Column<bool> wished, Column<std::int32_t> npu,
            Column<std::int32_t> place, Column<std::int32_t> chunk, Column<std::int32_t> result,
            Column<std::int32_t> result_place) {
    const program::Program program{.src = view(src),
                                   .dst = view(dst),
                                   .reduce = bytes_of(reduce),
                                   .events = events,
                                   .chains = {view(chain_offsets), view(chain_events)},
                                   .edges = {view(edge_from), view(edge_to)},
                                   .wished = bytes_of(wished),
                                   .npu = view(npu),
                                   .place = view(place),
                                   .chunk = view(chunk),
                                   .result = view(result),
                                   .result_place = view(result_place)};
    const nb::gil_scoped_release unlocked;
    return program::weave(program);
}

void bind(nb::module_& module) {
    using program::Wrong;
    nb::enum_<Wrong>(module, "Fault")
        .value("nothing", Wrong::nothing)
        .value("cycle", Wrong::cycle)
        .value("empty", Wrong::empty)
        .value("race", Wrong::race)
        .value("tangled", Wrong::tangled);
    nb::class_<Woven>(module, "Woven")
        .def_prop_ro("fault", [](const Woven& w) { return w.fault.what; })
        .def_prop_ro("fault_events", [](const Woven& w) { return w.fault.events; })
        .def_prop_ro("fault_cell", [](const Woven& w) { return w.fault.cell; })
        .def("columns", &columns);
    module.def("weave", &weave, nb::arg("events"), nb::arg("src"), nb::arg("dst"),
               nb::arg("reduce"), nb::arg("chain_offsets"), nb::arg("chain_events"),
               nb::arg("edge_from"), nb::arg("edge_to"), nb::arg("wished"), nb::arg("npu"),
               nb::arg("place"), nb::arg("chunk"), nb::arg("result"), nb::arg("result_place"));
}

const Registration registration("program", bind);

}  // namespace
}  // namespace weft::bindings
