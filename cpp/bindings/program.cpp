#include "programs/program.h"

#include <nanobind/stl/vector.h>

#include "bindings/names.h"
#include "bindings/values.h"

namespace weft::bindings {
namespace {

using program::Linearized;

using BoundProgram =
    Value<program::Program, Column<std::int32_t>, Column<std::int32_t>, Column<bool>, std::int64_t,
          Column<std::int64_t>, Column<std::int64_t>, Column<std::int64_t>, Column<std::int64_t>,
          Column<bool>, Column<std::int32_t>, Column<std::int32_t>, Column<std::int32_t>,
          Column<std::int32_t>, Column<std::int32_t>>;

// Moves the columns out; can be called once.
nb::dict columns(Linearized& linearized) {
    nb::dict found;
    found["chunk"] = give(std::move(linearized.chunk));
    found["src"] = give(std::move(linearized.src));
    found["dst"] = give(std::move(linearized.dst));
    found["reduce"] = give(std::move(linearized.reduce));
    found["src_place"] = give(std::move(linearized.src_place));
    found["dst_place"] = give(std::move(linearized.dst_place));
    found["action"] = give(std::move(linearized.action));
    found["before"] = give(std::move(linearized.before));
    found["dep_offsets"] = give(std::move(linearized.dep_offsets));
    found["deps"] = give(std::move(linearized.deps));
    return found;
}

void bind(nb::module_& module) {
    bind_enum<program::Wrong>(module, "Fault");
    nb::class_<Linearized>(module, "Linearized", "A program as rows, or what is wrong with it.")
        .def_prop_ro("fault", [](const Linearized& w) { return w.fault.what; })
        .def_prop_ro("fault_events", [](const Linearized& w) { return w.fault.events; })
        .def_prop_ro("fault_cell", [](const Linearized& w) { return w.fault.cell; })
        .def("columns", &columns,
             nb::sig("def columns(self) -> dict[str, numpy.typing.NDArray[typing.Any]]"),
             "Move the columns out; can be called once.");
    BoundProgram::bind(module, "Program", "src", "dst", "reduce", "events", "chain_offsets",
                       "chain_events", "edge_from", "edge_to", "wished", "npu", "place", "chunk",
                       "result", "result_place")
        .def(
            "linearize", [](const BoundProgram& self) { return program::linearize(self); },
            nb::call_guard<nb::gil_scoped_release>());
}

const Registration registration("program", bind);

}  // namespace
}  // namespace weft::bindings
