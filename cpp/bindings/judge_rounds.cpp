#include "judge/rounds.h"

#include <nanobind/stl/optional.h>

#include "bindings/arrays.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

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

    nb::class_<RoundViolation>(module, "RoundViolation")
        .def_ro("code", &RoundViolation::code)
        .def_ro("round", &RoundViolation::round)
        .def_ro("link", &RoundViolation::link)
        .def_ro("chunk", &RoundViolation::chunk)
        .def_ro("npu", &RoundViolation::npu)
        .def_ro("time", &RoundViolation::time)
        .def_ro("until", &RoundViolation::until)
        .def_ro("other", &RoundViolation::other);

    module.def(
        "judge_rounds",
        [](const Network& network, CostModel cost, bool sums, bool spreads, ps slot,
           std::int64_t count, const LogBytes& log, Column<std::int64_t> offsets,
           Column<std::int64_t> bytes, Column<std::int32_t> owner, Column<std::uint8_t> present,
           Column<std::uint8_t> twinned, Progress& progress) {
            const judge::RoundClaim claim{.network = &network,
                                          .cost = cost,
                                          .sums = sums,
                                          .spreads = spreads,
                                          .slot = slot,
                                          .count = count,
                                          .log = log,
                                          .offsets = view(offsets),
                                          .bytes = view(bytes),
                                          .owner = view(owner),
                                          .present = view(present),
                                          .twinned = view(twinned)};
            const nb::gil_scoped_release unlocked;
            return judge::judge_rounds(claim, progress);
        },
        nb::kw_only(), nb::arg("network"), nb::arg("cost"), nb::arg("sums"), nb::arg("spreads"),
        nb::arg("slot"), nb::arg("count"), nb::arg("log"), nb::arg("offsets"), nb::arg("bytes"),
        nb::arg("owner"), nb::arg("present"), nb::arg("twinned"), nb::arg("progress"));
}

const Registration registration("judge_rounds", bind);

}  // namespace
}  // namespace weft::bindings
