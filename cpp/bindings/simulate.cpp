#include "engine/simulate.h"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/arrays.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

auto give_times(Simulated&& done) {
    return std::tuple(give(std::move(done.start)), give(std::move(done.end)),
                      give(std::move(done.busy)));
}

// An algorithm's rows on a network, kept between the run and the questions about it.
class Simulation {
  public:
    Simulation(const Network& network, CostModel cost, Column<std::int64_t> route_offsets,
               Column<std::int32_t> route_links, Column<std::int32_t> chunk,
               Column<std::int32_t> src, Column<std::int32_t> dst, Column<std::uint8_t> reduce,
               Column<std::int32_t> route, Column<std::int32_t> src_place,
               Column<std::int32_t> dst_place, Column<std::int64_t> dep_offsets,
               Column<std::int64_t> deps, Column<std::int64_t> bytes, Column<std::uint8_t> summed,
               Column<std::uint8_t> chained, Column<std::int64_t> planned_end, std::int64_t reducer)
        : network_(network), routes_(rows(route_offsets, route_links)), cost_(cost),
          reducer_(reducer), route_(route), bytes_(bytes), planned_end_(planned_end),
          kept_(chunk, src, dst, reduce, src_place, dst_place, dep_offsets, deps, summed, chained) {
        nb::gil_scoped_release release;
        table_ = {network.npus, view(chunk),     view(src),       view(dst),
                  view(reduce), view(src_place), view(dst_place), view(dep_offsets),
                  view(deps),   view(summed),    view(chained)};
        waits_ = find_waits(table_, view(planned_end));
    }

    auto first_come() const {
        Simulated done;
        {
            nb::gil_scoped_release release;
            done = run_first_come(run());
        }
        return give_times(std::move(done));
    }

    auto as_planned(Column<std::int64_t> start) const {
        Simulated done;
        {
            nb::gil_scoped_release release;
            done = run_as_planned(run(), view(start), view(planned_end_));
        }
        return give_times(std::move(done));
    }

    auto critical_path(Column<std::int64_t> start, Column<std::int64_t> end) const {
        CriticalPath path;
        {
            nb::gil_scoped_release release;
            path = weft::critical_path(run(), {copy(start), copy(end), {}});
        }
        std::vector<std::uint8_t> cause;
        for (auto one : path.cause) cause.push_back(static_cast<std::uint8_t>(one));
        return std::tuple(give(std::move(path.row)), give(std::move(cause)),
                          give(std::move(path.link)));
    }

    auto occupied(Column<std::int64_t> start) const {
        Occupied all;
        {
            nb::gil_scoped_release release;
            all = weft::occupied(run(), view(start));
        }
        return std::tuple(give(std::move(all.duration)), give(std::move(all.begin)),
                          give(std::move(all.length)));
    }

  private:
    Run run() const {
        return {network_, routes_, cost_, table_, view(route_), view(bytes_), waits_, reducer_};
    }

    const Network& network_;
    Rows routes_;
    CostModel cost_;
    std::int64_t reducer_;
    Column<std::int32_t> route_;
    Column<std::int64_t> bytes_, planned_end_;
    // The arrays of the table: its views must not outlive them.
    std::tuple<Column<std::int32_t>, Column<std::int32_t>, Column<std::int32_t>,
               Column<std::uint8_t>, Column<std::int32_t>, Column<std::int32_t>,
               Column<std::int64_t>, Column<std::int64_t>, Column<std::uint8_t>,
               Column<std::uint8_t>>
        kept_;
    LogicView table_;
    RowWaits waits_;
};

void bind(nb::module_& module) {
    nb::class_<Simulation>(module, "Simulation")
        .def(nb::init<const Network&, CostModel, Column<std::int64_t>, Column<std::int32_t>,
                      Column<std::int32_t>, Column<std::int32_t>, Column<std::int32_t>,
                      Column<std::uint8_t>, Column<std::int32_t>, Column<std::int32_t>,
                      Column<std::int32_t>, Column<std::int64_t>, Column<std::int64_t>,
                      Column<std::int64_t>, Column<std::uint8_t>, Column<std::uint8_t>,
                      Column<std::int64_t>, std::int64_t>(),
             nb::keep_alive<1, 2>(), nb::kw_only(), nb::arg("network"), nb::arg("cost"),
             nb::arg("route_offsets"), nb::arg("route_links"), nb::arg("chunk"), nb::arg("src"),
             nb::arg("dst"), nb::arg("reduce"), nb::arg("route"), nb::arg("src_place"),
             nb::arg("dst_place"), nb::arg("dep_offsets"), nb::arg("deps"), nb::arg("bytes"),
             nb::arg("summed"), nb::arg("chained"), nb::arg("planned_end"), nb::arg("reducer"))
        .def("first_come", &Simulation::first_come)
        .def("as_planned", &Simulation::as_planned, nb::arg("start"))
        .def("critical_path", &Simulation::critical_path, nb::arg("start"), nb::arg("end"))
        .def("occupied", &Simulation::occupied, nb::arg("start"));
}

const Registration registration("simulate", bind);

}  // namespace
}  // namespace weft::bindings
