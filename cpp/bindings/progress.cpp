#include "base/progress.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "bindings/arrays.h"
#include "planners/schedule.h"

namespace weft::bindings {
namespace {

void check(const Progress& progress) {
    if (progress.cancelled) throw Cancelled();
}

void bind(nb::module_& module) {
    nb::exception<Cancelled>(module, "Cancelled");
    nb::class_<Progress>(module, "Progress",
                         "How far a long kernel is; may be asked and cancelled from another "
                         "thread.")
        .def(nb::init<>())
        .def("cancel", [](Progress& self) { self.cancelled = true; })
        .def(
            "enter",
            [](Progress& self, std::string phase) {
                check(self);
                self.enter(std::move(phase));
            },
            "phase"_a,
            "Say what comes next, such as \"verifying\"; this and the others may raise Cancelled.")
        .def(
            "begin",
            [](Progress& self, std::int64_t work) {
                check(self);
                self.begin(work);
            },
            "work"_a, "The next stage of the phase has so much to do.")
        .def(
            "advance",
            [](Progress& self) {
                check(self);
                ++self.done;
            },
            "So much of it is done: one more.")
        .def("check", &check)
        .def_prop_ro("phase", &Progress::phase)
        .def_prop_ro("stage", [](const Progress& self) { return self.stage.load(); })
        .def_prop_ro("done", [](const Progress& self) { return self.done.load(); })
        .def_prop_ro("total", [](const Progress& self) { return self.total.load(); });

    nb::class_<Search>(module, "Search",
                       "How a planner searches; `goal` is a time to aim at: no plan is shorter.")
        .def(
            "__init__",
            [](Search* self, std::uint64_t seed, ps goal, int threads, Progress& progress) {
                new (self) Search{seed, goal, threads, progress};
            },
            nb::kw_only(), "seed"_a, "goal"_a, "threads"_a, "progress"_a, nb::keep_alive<1, 5>());
}

const Registration registration("progress", bind);

}  // namespace
}  // namespace weft::bindings
