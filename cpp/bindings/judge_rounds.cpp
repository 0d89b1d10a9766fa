#include "judge/rounds.h"

#include "bindings/bind.h"
#include "bindings/values.h"

namespace weft::bindings {
namespace {

struct BoundRecord : judge::RoundRecord {
    Column<std::int64_t> kept;
};
using BoundParts = Value<judge::RoundParts, Column<std::int64_t>, Column<std::int32_t>,
                         Column<std::uint8_t>, Column<std::uint8_t>>;

void bind(nb::module_& module) {
    using judge::RoundCode;
    using judge::RoundViolation;
    nb::enum_<RoundCode>(module, "RoundCode")
        .value("offsets", RoundCode::offsets)
        .value("length", RoundCode::length)
        .value("beyond", RoundCode::beyond)
        .value("count", RoundCode::count)
        .value("no_twin", RoundCode::no_twin)
        .value("chunk_range", RoundCode::chunk_range)
        .value("link_taken", RoundCode::link_taken)
        .value("never_held", RoundCode::never_held)
        .value("held_late", RoundCode::held_late)
        .value("owner_sends", RoundCode::owner_sends)
        .value("sent_twice", RoundCode::sent_twice)
        .value("lost", RoundCode::lost)
        .value("sent_early", RoundCode::sent_early)
        .value("never_received", RoundCode::never_received)
        .value("never_sent", RoundCode::never_sent);

    nb::class_<RoundViolation>(module, "RoundViolation",
                               "What the judge found in a log of rounds; -1 where a field means "
                               "nothing.")
        .def_ro("code", &RoundViolation::code)
        .def_ro("round", &RoundViolation::round)
        .def_ro("link", &RoundViolation::link)
        .def_ro("chunk", &RoundViolation::chunk)
        .def_ro("npu", &RoundViolation::npu)
        .def_ro("time", &RoundViolation::time)
        .def_ro("until", &RoundViolation::until)
        .def_ro("other", &RoundViolation::other);

    nb::class_<BoundRecord>(module, "RoundRecord")
        .def(
            "__init__",
            [](BoundRecord* self, const LogBytes& log, Column<std::int64_t> offsets, ps slot,
               std::int64_t count) {
                new (self) BoundRecord{{log, view(offsets), slot, count}, offsets};
            },
            nb::arg("log"), nb::arg("offsets"), nb::arg("slot"), nb::arg("count"),
            nb::keep_alive<1, 2>());
    BoundParts::bind(module, "RoundParts", "bytes", "owner", "present", "twinned");
    module.def(
        "judge_rounds",
        [](const Network& network, CostModel cost, const BoundRecord& record,
           const BoundParts& parts, bool sums, bool spreads, Progress& progress) {
            return judge::judge_rounds({record, parts, &network, cost, sums, spreads}, progress);
        },
        nb::arg("network"), nb::arg("cost"), nb::arg("record"), nb::arg("parts"), nb::kw_only(),
        nb::arg("sums"), nb::arg("spreads"), nb::arg("progress"),
        nb::call_guard<nb::gil_scoped_release>());
}

const Registration registration("judge_rounds", bind);

}  // namespace
}  // namespace weft::bindings
