#include "planners/schedule.h"

#include "bindings/bind.h"
#include "bindings/planned.h"
#include "planners/retime.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    const auto offsets = [](const Planned& plan) -> const auto& { return plan.routes.offsets; };
    const auto links = [](const Planned& plan) -> const auto& { return plan.routes.items; };
    nb::class_<Planned>(module, "Schedule",
                        "Rows in order of start; no routes where a route is a link. `time` is when "
                        "the last taker is served, or NEVER if some cannot be.")
        .def_prop_ro("chunk", column<Planned>(&Planned::chunk))
        .def_prop_ro("src", column<Planned>(&Planned::src))
        .def_prop_ro("dst", column<Planned>(&Planned::dst))
        .def_prop_ro("reduce", column<Planned, bool>(&Planned::reduce))
        .def_prop_ro("route", column<Planned>(&Planned::route))
        .def_prop_ro("start", column<Planned>(&Planned::start))
        .def_prop_ro("end", column<Planned>(&Planned::end))
        .def_prop_ro("route_offsets", column<Planned>(offsets))
        .def_prop_ro("route_links", column<Planned>(links))
        .def_ro("time", &Planned::time);

    module.def(
        "retime",
        [](const Timing& timing, const BoundTransfers& rows,
           const Column<std::int64_t>& chunk_bytes) {
            Times times = unlocked([&] { return retime(timing, rows, view(chunk_bytes)); });
            return give_all(std::move(times.start), std::move(times.end));
        },
        nb::arg("timing"), nb::arg("rows"), nb::arg("chunk_bytes"), "Start and end of each row.");
    module.def(
        "tighten",
        [](const Timing& timing, const BoundTransfers& rows, std::int64_t bytes) {
            std::vector<std::int32_t> order;
            Times times = unlocked([&] { return tighten(timing, rows, bytes, order); });
            return give_all(std::move(order), std::move(times.start), std::move(times.end));
        },
        nb::arg("timing"), nb::arg("rows"), nb::arg("bytes"),
        "In which order the rows start; start and end of each.");
}

const Registration registration("schedule", bind);

}  // namespace
}  // namespace weft::bindings
