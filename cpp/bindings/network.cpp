#include "base/network.h"

#include "bindings/values.h"

namespace weft::bindings {
namespace {

std::vector<Speed> speeds(const Column<std::int64_t>& bandwidth,
                          const Column<std::int64_t>& latency) {
    std::vector<Speed> speed(bandwidth.size());
    for (std::size_t i = 0; i < speed.size(); ++i) speed[i] = {bandwidth(i), latency(i)};
    return speed;
}

// What each hop takes, and of each of its links when it is held and for how long.
auto hop_times(CostModel cost, const Column<std::int64_t>& bandwidth,
               const Column<std::int64_t>& latency, const Column<std::int64_t>& offsets,
               std::int64_t bytes) {
    const auto speed = speeds(bandwidth, latency);
    std::vector<Hold> holds(speed.size());
    std::vector<ps> duration(offsets.size() - 1);
    for (std::size_t i = 0; i < duration.size(); ++i) {
        const auto first = static_cast<std::size_t>(offsets(i));
        const auto count = static_cast<std::size_t>(offsets(i + 1)) - first;
        duration[i] = hop(cost, bytes, std::span(speed).subspan(first, count),
                          std::span(holds).subspan(first, count));
    }
    return std::tuple(give(std::move(duration)), give_column(holds, &Hold::offset),
                      give_column(holds, &Hold::length));
}

auto serialization_times(std::int64_t bytes, const Column<std::int64_t>& bandwidth) {
    std::vector<ps> times(bandwidth.size());
    for (std::size_t i = 0; i < times.size(); ++i) times[i] = serialization(bytes, bandwidth(i));
    return give(std::move(times));
}

void bind(nb::module_& module) {
    nb::class_<CostModel>(module, "CostModel")
        .def(nb::init<bool, bool>(), "blocking"_a, "store_and_forward"_a);

    nb::class_<Network>(module, "Network",
                        "Nodes, NPUs first, and directed links. `buffer`, `copies` and `adds` "
                        "are of each switch, or empty if none is limited, copies, or adds.")
        .def(
            "__init__",
            [](Network* self, std::int32_t npus, std::int32_t switches, Column<std::int32_t> src,
               Column<std::int32_t> dst, Column<std::int64_t> bandwidth,
               Column<std::int64_t> latency, Column<std::int64_t> buffer,
               Column<std::uint8_t> copies, Column<std::uint8_t> adds) {
                new (self) Network(npus, switches, copy(src), copy(dst), speeds(bandwidth, latency),
                                   copy(buffer), copy(copies), copy(adds));
            },
            "npus"_a, "switches"_a, "src"_a, "dst"_a, "bandwidth"_a, "latency"_a, "buffer"_a,
            "copies"_a, "adds"_a);

    BoundRows::bind(module, "Rows", "offsets", "items");
    BoundChunks::bind(module, "Chunks", "bytes", "pre", "post", "reduce", "reach", "set_offsets",
                      "set_members");
    BoundTransfers::bind<BoundTransfers>(module, "Transfers", "chunk", "src", "dst", "reduce",
                                         "route", "start", "end", "src_place", "dst_place",
                                         "dep_offsets", "deps");
    nb::class_<Timing>(module, "Timing", "What the times of rows are for.")
        .def(
            "__init__",
            [](Timing* self, const Network& network, CostModel cost, const BoundRows* routes) {
                new (self) Timing{network, cost, routes ? RowsView(*routes) : RowsView{}};
            },
            "network"_a, "cost"_a, "routes"_a.none(), nb::keep_alive<1, 2>(),
            nb::keep_alive<1, 4>());

    module.def("serialization", &serialization_times, "bytes"_a, "bandwidth"_a,
               "Picoseconds in which each link pushes so many bytes.");
    module.def("hop_times", &hop_times, "cost"_a, "bandwidth"_a, "latency"_a, "offsets"_a,
               "bytes"_a,
               "Duration of each hop; of each of its links when it is held, and how long.");
}

const Registration registration("network", bind);

}  // namespace
}  // namespace weft::bindings
