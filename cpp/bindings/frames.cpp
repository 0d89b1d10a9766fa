#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>

#include "bindings/arrays.h"
#include "bindings/bind.h"
#include "traces/frames.h"
#include "traces/splice.h"

namespace weft::bindings {
namespace {

using namespace chakra;

template <auto Member>
auto column() {
    return [](nb::handle_t<Frames> self) {
        const auto& values = nb::cast<const Frames&>(self).*Member;
        using Value = typename std::decay_t<decltype(values)>::value_type;
        return Array<const Value>(values.data(), {values.size()}, self);
    };
}

template <auto Member>
auto texts() {
    return [](const Frames& frames) {
        nb::list list;
        for (const auto& text : frames.*Member) list.append(nb::bytes(text.data(), text.size()));
        return list;
    };
}

void bind_reader(nb::module_& module) {
    nb::class_<Frames>(module, "TraceFrames")
        .def_prop_ro("id", column<&Frames::id>())
        .def_prop_ro("begin", column<&Frames::begin>())
        .def_prop_ro("end", column<&Frames::end>())
        .def_prop_ro("kind", column<&Frames::kind>())
        .def_prop_ro("size", column<&Frames::size>())
        .def_prop_ro("group", column<&Frames::group>())
        .def_prop_ro("tags", column<&Frames::tags>())
        .def_prop_ro("group_names", texts<&Frames::group_names>())
        .def_prop_ro("group_inputs", texts<&Frames::group_inputs>())
        .def_ro("nodes", &Frames::nodes)
        .def_ro("last_id", &Frames::last_id);
    module.def(
        "read_frames",
        [](nb::bytes file) {
            const std::string_view text(file.c_str(), file.size());
            nb::gil_scoped_release free;
            return read_frames(text);
        },
        nb::arg("file"));
}

// An algorithm with the arrays it looks at.
struct Splicer {
    Column<std::int32_t> chunk, src, dst;
    Column<bool> reduce;
    Column<std::int32_t> src_place, dst_place;
    Column<std::int64_t> dep_offsets, deps;
    Column<std::int32_t> tag;
    Column<std::int64_t> chunk_bytes;
    Column<bool> chunk_reduce;
    Column<std::int32_t> pre, post;
    Rows sets;
    std::int32_t ranks;
    std::optional<Plan> plan = {};

    Transfers table() const {
        return {view(chunk),     view(src),         view(dst),
                view(reduce),    view(chunk_bytes), view(src_place),
                view(dst_place), view(dep_offsets), view(deps)};
    }

    // The algorithm has been verified, so its numbers fit each other; ranks may have been renamed.
    void build() {
        for (std::size_t i = 0; i < chunk.size(); ++i)
            if (src(i) < 0 || src(i) >= ranks || dst(i) < 0 || dst(i) >= ranks)
                throw std::invalid_argument("a row is not between ranks");
        plan.emplace(table(), ranks);
    }

    Share share(std::int32_t rank) {
        if (rank < 0 || rank >= ranks) throw std::out_of_range("no such rank");
        nb::gil_scoped_release free;
        const Ends ends{view(pre), view(post), view(chunk_reduce), sets, view(tag)};
        return share_of(plan->nodes(rank), table(), ends, rank);
    }
};

nb::bytes write(const Share& share, std::uint64_t first_id, std::int32_t first_tag,
                nb::bytes frame) {
    std::string out;
    {
        const std::string_view bytes(frame.c_str(), frame.size());
        nb::gil_scoped_release free;
        write_share(out, share, first_id, first_tag, bytes);
    }
    return nb::bytes(out.data(), out.size());
}

void bind_splicer(nb::module_& module) {
    nb::class_<Share>(module, "TraceShare")
        .def("ids", &Share::ids, nb::arg("member"))
        .def("__len__", [](const Share& share) { return share.steps.size(); })
        .def("write", &write, nb::arg("first_id"), nb::arg("first_tag"), nb::arg("frame"));
    nb::class_<Splicer>(module, "TraceSplicer")
        .def(
            "__init__",
            [](Splicer* self, std::int32_t ranks, Column<std::int32_t> chunk,
               Column<std::int32_t> src, Column<std::int32_t> dst, Column<bool> reduce,
               Column<std::int32_t> src_place, Column<std::int32_t> dst_place,
               Column<std::int64_t> dep_offsets, Column<std::int64_t> deps,
               Column<std::int32_t> tag, Column<std::int64_t> chunk_bytes,
               Column<bool> chunk_reduce, Column<std::int32_t> pre, Column<std::int32_t> post,
               Column<std::int64_t> set_offsets, Column<std::int32_t> set_members) {
                new (self) Splicer{chunk,        src,
                                   dst,          reduce,
                                   src_place,    dst_place,
                                   dep_offsets,  deps,
                                   tag,          chunk_bytes,
                                   chunk_reduce, pre,
                                   post,         rows(set_offsets, set_members),
                                   ranks};
                self->build();
            },
            nb::arg("ranks"), nb::arg("chunk"), nb::arg("src"), nb::arg("dst"), nb::arg("reduce"),
            nb::arg("src_place"), nb::arg("dst_place"), nb::arg("dep_offsets"), nb::arg("deps"),
            nb::arg("tag"), nb::arg("chunk_bytes"), nb::arg("chunk_reduce"), nb::arg("pre"),
            nb::arg("post"), nb::arg("set_offsets"), nb::arg("set_members"))
        .def("share", &Splicer::share, nb::arg("rank"));
}

void bind(nb::module_& module) {
    bind_reader(module);
    bind_splicer(module);
}

const Registration registration("frames", bind);

}  // namespace
}  // namespace weft::bindings
