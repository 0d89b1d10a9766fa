#include "judge/judge.h"

#include <stdexcept>

#include "bindings/names.h"
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
    using judge::Violation;
    bind_enum<judge::Code>(module, "ViolationCode");
    bind_members<&Violation::code, &Violation::in_row_order, &Violation::time, &Violation::row,
                 &Violation::chunk, &Violation::npu, &Violation::link, &Violation::other,
                 &Violation::detail>(nb::class_<Violation>(
        module, "Violation",
        "What the judge found; ``cpp/judge/judge.h`` says what the numbers mean for each code."));

    module.def("judge", &judge, nb::kw_only(), "npus"_a, "rows"_a, "chunks"_a, "timing"_a.none(),
               "removed"_a = nb::none(), nb::call_guard<nb::gil_scoped_release>(),
               "The first violation, or none. `removed`: of each NPU, or None if none is.");
}

const Registration registration("judge", bind);

}  // namespace
}  // namespace weft::bindings
