#include "planners/rounds/rounds.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <tuple>

#include "bindings/arrays.h"
#include "bindings/bind.h"
#include "planners/rounds/log.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    nb::exception<LogChanged>(module, "LogChanged");
    nb::class_<LogBytes>(module, "LogBytes")
        .def_static(
            "in_memory", [](Column<std::uint8_t> log) { return LogBytes{.memory = view(log)}; },
            nb::arg("log"), nb::keep_alive<0, 1>())
        .def_static(
            "in_file",
            [](int file, std::int64_t at, std::int64_t length) {
                return LogBytes{.file = file, .at = at, .length = length};
            },
            nb::arg("file"), nb::arg("at"), nb::arg("length"));

    module.def(
        "run_rounds",
        [](const Network& network, Column<std::int32_t> period, Column<std::int32_t> lag,
           Column<std::int32_t> owner, std::uint64_t seed, int threads, int file, std::int64_t at,
           Progress& progress) {
            Rounds found;
            int error = 0;
            {
                nb::gil_scoped_release release;
                try {
                    found = run_rounds(
                        network, {view(period), view(lag), view(owner), seed, threads, file, at},
                        progress);
                } catch (const std::system_error& failure) {
                    error = failure.code().value();
                }
            }
            if (error) {
                errno = error;
                PyErr_SetFromErrno(PyExc_OSError);
                throw nb::python_error();
            }
            return std::tuple(give(std::move(found.offsets)), found.sends, found.complete);
        },
        nb::arg("network"), nb::arg("period"), nb::arg("lag"), nb::arg("owner"), nb::arg("seed"),
        nb::arg("threads"), nb::arg("file"), nb::arg("at"), nb::arg("progress"));

    module.def(
        "round_entries",
        [](const LogBytes& log, Column<std::int64_t> offsets, std::int64_t links, bool wide,
           std::int64_t count, std::optional<Column<std::int32_t>> some) {
            RoundEntries found;
            {
                nb::gil_scoped_release release;
                const RoundLogView rounds{log, view(offsets), links, wide};
                found = some ? round_entries(rounds, view(*some)) : round_entries(rounds, count);
            }
            return std::tuple(give(std::move(found.round)), give(std::move(found.link)),
                              give(std::move(found.chunk)), found.damaged);
        },
        nb::arg("log"), nb::arg("offsets"), nb::arg("links"), nb::arg("wide"), nb::arg("count"),
        nb::arg("some").none());
}

const Registration registration("rounds", bind);

}  // namespace
}  // namespace weft::bindings
