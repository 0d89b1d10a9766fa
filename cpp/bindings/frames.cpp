#include <stdexcept>

#include "bindings/bytes.h"
#include "bindings/names.h"
#include "bindings/values.h"
#include "traces/frames.h"
#include "traces/splice.h"

namespace weft::bindings {
namespace {

using namespace chakra;

void bind_reader(nb::module_& module) {
    bind_members<&Frames::id, &Frames::begin, &Frames::end, &Frames::kind, &Frames::size,
                 &Frames::group, &Frames::tags, &Frames::nodes, &Frames::last_id>(
        nb::class_<Frames>(module, "TraceFrames",
                           "The collectives of a workload's trace; columns in the order in which "
                           "they are issued."))
        .def_prop_ro("group_names", [](const Frames& self) { return bytes_of(self.group_names); })
        .def_prop_ro("group_inputs",
                     [](const Frames& self) { return bytes_of(self.group_inputs); });
    module.def(
        "read_frames",
        [](nb::bytes file) {
            return unlocked([text = text_of(file)] { return read_frames(text); });
        },
        "file"_a);
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
    unlocked([&, text = text_of(frame)] { write_share(out, share, first_id, first_tag, text); });
    return bytes_of(out);
}

void bind_splicer(nb::module_& module) {
    nb::class_<Share>(module, "TraceShare")
        .def("ids", &Share::ids, "member"_a)
        .def("__len__", [](const Share& share) { return share.steps.size(); })
        .def("write", &write, "first_id"_a, "first_tag"_a, "frame"_a);
    nb::class_<Splicer>(module, "TraceSplicer")
        .def(nb::init<std::int32_t, const BoundTransfers&, const BoundChunks&,
                      Column<std::int32_t>>(),
             "ranks"_a, "rows"_a, "chunks"_a, "tag"_a, nb::keep_alive<1, 3>(),
             nb::keep_alive<1, 4>())
        .def("share", &Splicer::share, "rank"_a, nb::call_guard<nb::gil_scoped_release>());
}

void bind(nb::module_& module) {
    bind_reader(module);
    bind_splicer(module);
}

const Registration registration("frames", bind);

}  // namespace
}  // namespace weft::bindings
