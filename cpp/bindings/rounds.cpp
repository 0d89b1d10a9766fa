#include "planners/rounds/rounds.h"

#include <cerrno>
#include <system_error>

#include "bindings/arrays.h"
#include "planners/rounds/log.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    nb::exception<LogChanged>(module, "LogChanged");
    nb::class_<LogBytes>(module, "LogBytes",
                         "The bytes of a log of rounds; whoever makes one keeps the file.")
        .def_static(
            "in_memory", [](Column<std::uint8_t> log) { return LogBytes{.memory = view(log)}; },
            "log"_a, nb::keep_alive<0, 1>())
        .def_static(
            "in_file",
            [](int file, std::int64_t at, std::int64_t length) {
                return LogBytes{.file = file, .at = at, .length = length};
            },
            "file"_a, "at"_a, "length"_a);

    module.def(
        "run_rounds",
        [](const Network& network, const Column<std::int32_t>& period,
           const Column<std::int32_t>& lag, const Column<std::int32_t>& owner, const Search& search,
           int file, std::int64_t at) {
            try {
                Rounds found = unlocked([&] {
                    return run_rounds(network, {view(period), view(lag), view(owner), file, at},
                                      search);
                });
                return std::tuple(give(std::move(found.offsets)), found.sends, found.complete);
            } catch (const std::system_error& failure) {
                errno = failure.code().value();
                PyErr_SetFromErrno(PyExc_OSError);
                throw nb::python_error();
            }
        },
        "network"_a, "period"_a, "lag"_a, "owner"_a, "search"_a, "file"_a, "at"_a,
        "Write a log into an open file; offsets of the rounds, how many entries there are, and "
        "whether all got everything. Raises OSError if it cannot be written.");

    module.def(
        "round_entries",
        [](const LogBytes& log, const Column<std::int64_t>& offsets, std::int64_t links, bool wide,
           std::int64_t count, const Maybe<std::int32_t>& some) {
            RoundEntries found = unlocked([&] {
                const RoundLogView rounds{log, view(offsets), links, wide};
                return some ? round_entries(rounds, view(*some)) : round_entries(rounds, count);
            });
            return std::tuple_cat(
                give_all(std::move(found.round), std::move(found.link), std::move(found.chunk)),
                std::tuple(found.damaged));
        },
        "log"_a, "offsets"_a, "links"_a, "wide"_a, "count"_a, "some"_a.none(),
        "Round, link and chunk of each entry, and a damaged round or -1. `some`: only of these "
        "links, in ascending order; else of all, and `count` are expected.");
}

const Registration registration("rounds", bind);

}  // namespace
}  // namespace weft::bindings
