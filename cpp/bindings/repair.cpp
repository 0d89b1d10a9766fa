#include "planners/repair/repair.h"

#include "bindings/values.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    module.def(
        "complete",
        [](const Network& network, const BoundRows& missing, const Column<std::int64_t>& hold,
           const Column<std::int64_t>& duration, ps begin, Progress& progress) {
            Completion found = unlocked([&] {
                return complete(network, missing, view(hold), view(duration), begin, progress);
            });
            return give_all(std::move(found.chunk), std::move(found.link), std::move(found.start));
        },
        "network"_a, "missing"_a, "hold"_a, "duration"_a, "begin"_a, "progress"_a,
        "Chunk, link and start of each row.");
}

const Registration registration("repair", bind);

}  // namespace
}  // namespace weft::bindings
