#include "judge/judge.h"

#include <nanobind/stl/optional.h>

#include "bindings/arrays.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

using Bytes = std::span<const std::uint8_t>;
using Int32s = std::optional<Column<std::int32_t>>;
using Int64s = std::optional<Column<std::int64_t>>;

Bytes bytes_of(const Column<bool>& column) {
    return {reinterpret_cast<const std::uint8_t*>(column.data()), column.size()};
}

template <class T>
std::span<const T> view_if(const std::optional<Column<T>>& column) {
    return column ? view(*column) : std::span<const T>{};
}

std::optional<judge::Violation> judge(
    std::int32_t npus, Column<std::int32_t> chunk, Column<std::int32_t> src,
    Column<std::int32_t> dst, Column<bool> reduce, Int32s route, Int64s start, Int64s end,
    Int32s src_place, Int32s dst_place, Int64s dep_offsets, Int64s deps, Column<std::int64_t> bytes,
    Column<std::int32_t> pre, Column<std::int32_t> post, Column<std::int32_t> reach,
    Column<bool> reduction, Column<std::int64_t> set_offsets, Column<std::int32_t> set_members,
    const Network* network, std::optional<CostModel> cost, Int64s route_offsets, Int32s route_links,
    Column<bool> removed) {
    const judge::Claim claim{.npus = npus,
                             .chunk = view(chunk),
                             .src = view(src),
                             .dst = view(dst),
                             .reduce = bytes_of(reduce),
                             .timed = start.has_value(),
                             .route = view_if(route),
                             .start = view_if(start),
                             .end = view_if(end),
                             .src_place = view_if(src_place),
                             .dst_place = view_if(dst_place),
                             .dep_offsets = view_if(dep_offsets),
                             .deps = view_if(deps),
                             .bytes = view(bytes),
                             .pre = view(pre),
                             .post = view(post),
                             .reach = view(reach),
                             .reduction = bytes_of(reduction),
                             .set_offsets = view(set_offsets),
                             .set_members = view(set_members),
                             .network = network,
                             .cost = cost.value_or(CostModel{}),
                             .route_offsets = view_if(route_offsets),
                             .route_links = view_if(route_links),
                             .removed = bytes_of(removed)};
    const nb::gil_scoped_release unlocked;
    return judge::judge(claim);
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

    nb::class_<Violation>(module, "Violation")
        .def_ro("code", &Violation::code)
        .def_ro("in_row_order", &Violation::in_row_order)
        .def_ro("time", &Violation::time)
        .def_ro("row", &Violation::row)
        .def_ro("chunk", &Violation::chunk)
        .def_ro("npu", &Violation::npu)
        .def_ro("link", &Violation::link)
        .def_ro("other", &Violation::other)
        .def_ro("detail", &Violation::detail);

    module.def("judge", &judge, nb::kw_only(), nb::arg("npus"), nb::arg("chunk"), nb::arg("src"),
               nb::arg("dst"), nb::arg("reduce"), nb::arg("route").none(), nb::arg("start").none(),
               nb::arg("end").none(), nb::arg("src_place").none(), nb::arg("dst_place").none(),
               nb::arg("dep_offsets").none(), nb::arg("deps").none(), nb::arg("sizes"),
               nb::arg("pre"), nb::arg("post"), nb::arg("reach"), nb::arg("reduction"),
               nb::arg("set_offsets"), nb::arg("set_members"), nb::arg("network").none(),
               nb::arg("cost").none(), nb::arg("route_offsets").none(),
               nb::arg("route_links").none(), nb::arg("removed"));
}

const Registration registration("judge", bind);

}  // namespace
}  // namespace weft::bindings
