#include "judge/judge.h"

#include <stdexcept>

#include "bindings/bind.h"
#include "bindings/values.h"

namespace weft::bindings {
namespace {

std::optional<judge::Violation> judge(std::int32_t npus, const BoundTransfers& rows,
                                      const BoundChunks& chunks, const Timing* timing,
                                      const Maybe<bool>& removed) {
    if (rows.is_timed() && timing == nullptr)
        throw std::invalid_argument("rows with times need a network");
    return judge::judge({.npus = npus,
                         .rows = rows,
                         .timed = rows.is_timed(),
                         .chunks = chunks,
                         .timing = timing,
                         .removed = view(removed)});
}

void bind(nb::module_& module) {
    using judge::Code;
    using judge::Violation;
    nb::enum_<Code>(module, "ViolationCode")
        .value("demand_npu", Code::demand_npu)
        .value("chunk_range", Code::chunk_range)
        .value("npu_range", Code::npu_range)
        .value("npu_removed", Code::npu_removed)
        .value("out_of_reach", Code::out_of_reach)
        .value("place_range", Code::place_range)
        .value("not_reduction", Code::not_reduction)
        .value("dep_range", Code::dep_range)
        .value("dep_offsets", Code::dep_offsets)
        .value("routes_broken", Code::routes_broken)
        .value("route_range", Code::route_range)
        .value("route_broken", Code::route_broken)
        .value("route_ends", Code::route_ends)
        .value("buffer_full", Code::buffer_full)
        .value("negative_start", Code::negative_start)
        .value("duration", Code::duration)
        .value("dep_late", Code::dep_late)
        .value("link_taken", Code::link_taken)
        .value("never_held", Code::never_held)
        .value("held_late", Code::held_late)
        .value("wrong_chunk", Code::wrong_chunk)
        .value("mixed", Code::mixed)
        .value("never_received", Code::never_received)
        .value("wrong_at_end", Code::wrong_at_end)
        .value("missing", Code::missing)
        .value("twice", Code::twice)
        .value("too_large", Code::too_large);

    nb::class_<Violation>(module, "Violation",
                          "What the judge found; ``cpp/judge/judge.h`` says what the numbers mean "
                          "for each code.")
        .def_ro("code", &Violation::code)
        .def_ro("in_row_order", &Violation::in_row_order)
        .def_ro("time", &Violation::time)
        .def_ro("row", &Violation::row)
        .def_ro("chunk", &Violation::chunk)
        .def_ro("npu", &Violation::npu)
        .def_ro("link", &Violation::link)
        .def_ro("other", &Violation::other)
        .def_ro("detail", &Violation::detail);

    module.def("judge", &judge, nb::kw_only(), nb::arg("npus"), nb::arg("rows"), nb::arg("chunks"),
               nb::arg("timing").none(), nb::arg("removed") = nb::none(),
               nb::call_guard<nb::gil_scoped_release>(),
               "The first violation, or none. `removed`: of each NPU, or None if none is.");
}

const Registration registration("judge", bind);

}  // namespace
}  // namespace weft::bindings
