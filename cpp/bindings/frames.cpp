#include <stdexcept>

#include "bindings/bind.h"
#include "bindings/values.h"
#include "traces/frames.h"
#include "traces/splice.h"

namespace weft::bindings {
namespace {

using namespace chakra;

template <auto Member>
auto texts() {
    return [](const Frames& frames) {
        nb::typed<nb::list, nb::bytes> list;
        for (const auto& text : frames.*Member) list.append(nb::bytes(text.data(), text.size()));
        return list;
    };
}

void bind_reader(nb::module_& module) {
    nb::class_<Frames>(module, "TraceFrames",
                       "The collectives of a workload's trace; columns in the order in which they "
                       "are issued.")
        .def_prop_ro("id", column<Frames>(&Frames::id))
        .def_prop_ro("begin", column<Frames>(&Frames::begin))
        .def_prop_ro("end", column<Frames>(&Frames::end))
        .def_prop_ro("kind", column<Frames>(&Frames::kind))
        .def_prop_ro("size", column<Frames>(&Frames::size))
        .def_prop_ro("group", column<Frames>(&Frames::group))
        .def_prop_ro("tags", column<Frames>(&Frames::tags))
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

// An algorithm whose nodes are put into traces. It has been verified, so its numbers fit each
// other; ranks may have been renamed.
class Splicer {
  public:
    Splicer(std::int32_t ranks, const BoundTransfers& rows, const BoundChunks& chunks,
            Column<std::int32_t> tag)
        : ranks_(ranks), rows_(rows), chunks_(chunks), tag_(std::move(tag)),
          plan_(checked(rows, ranks), chunks.bytes, ranks) {}

    Share share(std::int32_t rank) {
        if (rank < 0 || rank >= ranks_) throw std::out_of_range("no such rank");
        return share_of(plan_.nodes(rank), rows_, chunks_, view(tag_), rank);
    }

  private:
    static const Transfers& checked(const Transfers& rows, std::int32_t ranks) {
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (rows.src[i] < 0 || rows.src[i] >= ranks || rows.dst[i] < 0 || rows.dst[i] >= ranks)
                throw std::invalid_argument("a row is not between ranks");
        return rows;
    }

    std::int32_t ranks_;
    const Transfers& rows_;
    const Chunks& chunks_;
    Column<std::int32_t> tag_;
    Plan plan_;
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
        .def(nb::init<std::int32_t, const BoundTransfers&, const BoundChunks&,
                      Column<std::int32_t>>(),
             nb::arg("ranks"), nb::arg("rows"), nb::arg("chunks"), nb::arg("tag"),
             nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
        .def("share", &Splicer::share, nb::arg("rank"), nb::call_guard<nb::gil_scoped_release>());
}

void bind(nb::module_& module) {
    bind_reader(module);
    bind_splicer(module);
}

const Registration registration("frames", bind);

}  // namespace
}  // namespace weft::bindings
