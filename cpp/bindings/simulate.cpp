#include "engine/simulate.h"

#include "bindings/values.h"

namespace weft::bindings {
namespace {

auto give_times(Simulated&& done) {
    return give_all(std::move(done.start), std::move(done.end), std::move(done.busy));
}

// An algorithm's rows on a network, kept between the run and the questions about it.
class Simulation {
  public:
    Simulation(const Timing& timing, const BoundTransfers& rows, const BoundChunks& chunks,
               Maybe<std::uint8_t> chained, std::int64_t reducer)
        : timing_(timing), bytes_(chunks.bytes), chained_(std::move(chained)), reducer_(reducer),
          table_{rows, timing.network.npus, chunks.reduce, view(chained_)},
          waits_(unlocked([&] { return find_waits(table_, table_.end); })) {}

    auto first_come() const {
        return give_times(unlocked([&] { return run_first_come(run()); }));
    }

    auto in_order(const Column<std::int64_t>& earliest) const {
        return give_times(unlocked([&] { return run_in_order(run(), view(earliest)); }));
    }

    auto as_planned() const {
        return give_times(
            unlocked([&] { return run_as_planned(run(), table_.start, table_.end); }));
    }

    auto critical_path(const Column<std::int64_t>& start, const Column<std::int64_t>& end) const {
        const auto path =
            unlocked([&] { return weft::critical_path(run(), {copy(start), copy(end), {}}); });
        return std::tuple(give_column(path, &CriticalStep::row),
                          give_column<std::uint8_t>(path, &CriticalStep::cause),
                          give_column(path, &CriticalStep::link));
    }

    auto occupied(const Column<std::int64_t>& start) const {
        Occupied all = unlocked([&] { return weft::occupied(run(), view(start)); });
        return give_all(std::move(all.duration), std::move(all.begin), std::move(all.length));
    }

  private:
    Run run() const { return {timing_, table_, bytes_, waits_, reducer_}; }

    Timing timing_;
    std::span<const std::int64_t> bytes_;
    Maybe<std::uint8_t> chained_;
    std::int64_t reducer_;
    LogicView table_;
    RowWaits waits_;
};

void bind(nb::module_& module) {
    nb::class_<Simulation>(module, "Simulation",
                           "Rows of an algorithm on a network, with what they wait for. If they "
                           "have times, those are planned.")
        .def(nb::init<const Timing&, const BoundTransfers&, const BoundChunks&, Maybe<std::uint8_t>,
                      std::int64_t>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), "timing"_a,
             "rows"_a, "chunks"_a, nb::kw_only(), "chained"_a = nb::none(), "reducer"_a = 0)
        .def("first_come", &Simulation::first_come,
             "Start and end of each row, and how long each link was held.")
        .def("in_order", &Simulation::in_order, "earliest"_a,
             "The same, rows placed in the table's order, none sooner than it may.")
        .def("as_planned", &Simulation::as_planned, "The same, each link in the planned order.")
        .def("critical_path", &Simulation::critical_path, "start"_a, "end"_a,
             "Row, cause and link of each step.")
        .def("occupied", &Simulation::occupied, "start"_a,
             "The duration of each row; of each link it crosses when it is held, and how long.");
}

const Registration registration("simulate", bind);

}  // namespace
}  // namespace weft::bindings
