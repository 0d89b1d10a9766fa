#include "judge/rounds.h"

#include "bindings/names.h"
#include "bindings/values.h"

namespace weft::bindings {
namespace {

struct BoundRecord : judge::RoundRecord {
    Column<std::int64_t> kept;
};
using BoundParts = Value<judge::RoundParts, Column<std::int64_t>, Column<std::int32_t>,
                         Column<std::uint8_t>, Column<std::uint8_t>>;

void bind(nb::module_& module) {
    using judge::RoundViolation;
    bind_enum<judge::RoundCode>(module, "RoundCode");
    bind_members<&RoundViolation::code, &RoundViolation::round, &RoundViolation::link,
                 &RoundViolation::chunk, &RoundViolation::npu, &RoundViolation::time,
                 &RoundViolation::until, &RoundViolation::other>(nb::class_<RoundViolation>(
        module, "RoundViolation",
        "What the judge found in a log of rounds; -1 where a field means nothing."));

    nb::class_<BoundRecord>(module, "RoundRecord")
        .def(
            "__init__",
            [](BoundRecord* self, const LogBytes& log, Column<std::int64_t> offsets, ps slot,
               std::int64_t count) {
                new (self) BoundRecord{{log, view(offsets), slot, count}, offsets};
            },
            "log"_a, "offsets"_a, "slot"_a, "count"_a, nb::keep_alive<1, 2>());
    BoundParts::bind(module, "RoundParts", "bytes", "owner", "present", "has_reverse");
    module.def(
        "judge_rounds",
        [](const Network& network, CostModel cost, const BoundRecord& record,
           const BoundParts& parts, bool sums, bool spreads, Progress& progress) {
            return judge::judge_rounds({record, parts, &network, cost, sums, spreads}, progress);
        },
        "network"_a, "cost"_a, "record"_a, "parts"_a, nb::kw_only(), "sums"_a, "spreads"_a,
        "progress"_a, nb::call_guard<nb::gil_scoped_release>());
}

const Registration registration("judge_rounds", bind);

}  // namespace
}  // namespace weft::bindings
