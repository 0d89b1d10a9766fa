#include "topology/automorphisms.h"

#include <stdexcept>

#include "bindings/arrays.h"

namespace weft::bindings {

namespace {

void bind(nb::module_& module) {
    module.def(
        "find_automorphisms",
        [](const Column<std::int32_t>& colour, const Column<std::int32_t>& src,
           const Column<std::int32_t>& dst, const Column<std::int32_t>& kind,
           const Column<std::int32_t>& members, std::int64_t budget) {
            const auto nodes = static_cast<std::int32_t>(colour.size());
            for (const auto& column : {view(src), view(dst), view(members)})
                for (const auto node : column)
                    if (node < 0 || node >= nodes) throw std::out_of_range("no such node");
            if (src.size() != dst.size() || src.size() != kind.size())
                throw std::invalid_argument("columns differ in length");
            auto found = unlocked([&] {
                return find_automorphisms({view(colour), view(src), view(dst), view(kind)},
                                          view(members), budget);
            });
            return std::tuple(found.transitive, give(std::move(found.images)));
        },
        "colour"_a, "src"_a, "dst"_a, "kind"_a, "members"_a, "budget"_a);
}

const Registration registration("automorphisms", bind);

}  // namespace
}  // namespace weft::bindings
