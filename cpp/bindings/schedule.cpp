#include "planners/schedule.h"

#include "bindings/names.h"
#include "bindings/planned.h"
#include "planners/retime.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    bind_members<&Planned::chunk, &Planned::src, &Planned::dst, &Planned::reduce, &Planned::route,
                 &Planned::start, &Planned::end, &Planned::time>(
        nb::class_<Planned>(module, "Schedule",
                            "Rows in order of start; no routes where a route is a link. `time` is "
                            "when the last taker is served, or NEVER if some cannot be."))
        .def_prop_ro("route_offsets", column<Planned>(&Planned::routes, &Rows::offsets))
        .def_prop_ro("route_links", column<Planned>(&Planned::routes, &Rows::items));

    module.def(
        "retime",
        [](const Timing& timing, const BoundTransfers& rows,
           const Column<std::int64_t>& chunk_bytes) {
            Times times = unlocked([&] { return retime(timing, rows, view(chunk_bytes)); });
            return give_all(std::move(times.start), std::move(times.end));
        },
        "timing"_a, "rows"_a, "chunk_bytes"_a, "Start and end of each row.");
    module.def(
        "tighten",
        [](const Timing& timing, const BoundTransfers& rows, std::int64_t bytes) {
            std::vector<std::int32_t> order;
            Times times = unlocked([&] { return tighten(timing, rows, bytes, order); });
            return give_all(std::move(order), std::move(times.start), std::move(times.end));
        },
        "timing"_a, "rows"_a, "bytes"_a, "In which order the rows start; start and end of each.");
}

const Registration registration("schedule", bind);

}  // namespace
}  // namespace weft::bindings
