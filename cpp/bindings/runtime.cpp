#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bindings/bytes.h"
#include "bindings/names.h"
#include "bindings/values.h"
#include "runtime/execution.h"
#include "runtime/pipes.h"
#include "runtime/rings.h"
#include "runtime/sockets.h"

namespace weft::bindings {
namespace {

using namespace runtime;

using BoundSteps =
    Value<Program, Column<std::int32_t>, Column<std::int32_t>, Column<std::int32_t>,
          Column<std::int32_t>, Column<std::int32_t>, Column<std::int32_t>, Column<std::int64_t>,
          Column<std::int64_t>, Column<std::int64_t>, Column<std::int64_t>, Column<bool>,
          Column<std::int32_t>, Column<std::int32_t>, Column<std::int32_t>, Column<std::int32_t>,
          Column<std::int32_t>, Column<std::int64_t>, Column<std::int64_t>>;

// Bytes of an array, whatever its elements are; the caller knows which ones may be written.
using Memory = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::span<std::byte> bytes_of_array(const Memory& array) {
    auto* const first = const_cast<std::uint8_t*>(array.data());
    return {reinterpret_cast<std::byte*>(first), array.size()};
}

// An execution and what it works on.
struct Run {
    Run(const BoundSteps& program, std::vector<Memory> arrays, Type type, Op op,
        Transport& transport, nb::bytes key, bool traced)
        : kept(std::move(arrays)),
          execution(program, spans(kept), type, op, transport, key_of(key), traced) {}

    static std::vector<std::span<std::byte>> spans(const std::vector<Memory>& arrays) {
        std::vector<std::span<std::byte>> all;
        for (const auto& array : arrays) all.push_back(bytes_of_array(array));
        return all;
    }
    static Key key_of(const nb::bytes& bytes) {
        Key key;
        if (bytes.size() != key.size()) throw std::invalid_argument("a key has 32 bytes");
        std::memcpy(key.data(), bytes.c_str(), key.size());
        return key;
    }

    std::vector<Memory> kept;
    Execution execution;
};

void bind_execution(nb::module_& module) {
    bind_enum<State>(module, "RunState");
    bind_enum<Type>(module, "ElementType");
    bind_enum<Op>(module, "ElementOp");
    BoundSteps::bind(module, "Steps", "what", "peer", "queue", "from_buffer", "base_buffer",
                     "to_buffer", "from_", "base", "to", "length", "combines", "read_cell",
                     "write_cell", "read_after", "written_after", "free_after", "after_offsets",
                     "after");
    nb::class_<Run>(module, "Execution", "One rank's run of a program.")
        .def(nb::init<const BoundSteps&, std::vector<Memory>, Type, Op, Transport&, nb::bytes,
                      bool>(),
             "steps"_a, "buffers"_a, "type"_a, "op"_a, "transport"_a, "key"_a, "traced"_a,
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 6>())
        .def(
            "advance",
            [](Run& self, double seconds) {
                const auto time = std::chrono::duration_cast<Clock::duration>(
                    std::chrono::duration<double>(seconds));
                return self.execution.advance(Clock::now() + time);
            },
            "seconds"_a, nb::call_guard<nb::gil_scoped_release>(),
            "Work until all is done, something is wrong, there is news, or so much time is over.")
        .def_prop_ro("peer", [](const Run& self) { return self.execution.peer(); })
        .def_prop_ro("moved", [](const Run& self) { return self.execution.moved(); })
        .def_prop_ro("waiting", [](const Run& self) { return self.execution.waiting(); })
        .def("times", [](const Run& self) {
            return give_all(std::vector(self.execution.begun()),
                            std::vector(self.execution.ended()));
        });
}

void bind_elements(nb::module_& module) {
    module.def(
        "combine",
        [](Type type, Op op, const Memory& to, const Memory& base, const Memory& other) {
            const auto size = std::min({to.size(), base.size(), other.size()});
            unlocked([&] {
                combine(type, op, bytes_of_array(to).data(), bytes_of_array(base).data(),
                        bytes_of_array(other).data(), size / size_of(type));
            });
        },
        "type"_a, "op"_a, "to"_a, "base"_a, "other"_a, "to = base op other, of bytes.");
    module.def(
        "divide",
        [](Type type, const Memory& at, std::int64_t by) {
            if (by == 0) throw std::invalid_argument("divided by zero");
            unlocked(
                [&] { divide(type, bytes_of_array(at).data(), at.size() / size_of(type), by); });
        },
        "type"_a, "at"_a, "by"_a, "Divide each element by a count.");
}

void bind(nb::module_& module) {
    nb::class_<Transport>(module, "Transport");
    nb::class_<Sockets, Transport>(module, "Sockets", "Channels over connected sockets.")
        .def(nb::init<const std::vector<int>&>(), "watched"_a)
        .def("add", &Sockets::add, "peer"_a, "descriptor"_a);
    nb::class_<Rings, Transport>(module, "Rings", "Channels through shared memory.")
        .def_static("bytes", &Rings::bytes, "ranks"_a, "ring_bytes"_a)
        .def(
            "__init__",
            [](Rings* self, const Memory& memory, std::int32_t rank, std::int32_t ranks,
               std::size_t ring_bytes, std::vector<int> watched) {
                new (self)
                    Rings(bytes_of_array(memory), rank, ranks, ring_bytes, std::move(watched));
            },
            "memory"_a, "rank"_a, "ranks"_a, "ring_bytes"_a, "watched"_a, nb::keep_alive<1, 2>());
    nb::class_<Pipes, Transport>(module, "Pipes", "Channels whose bytes the caller carries.")
        .def(nb::init<std::int32_t, std::size_t>(), "ranks"_a, "room"_a)
        .def(
            "take",
            [](Pipes& self, std::int32_t peer, const Memory& into) {
                return self.take(peer, bytes_of_array(into));
            },
            "peer"_a, "into"_a, "Take what is to be sent; gives how many bytes.")
        .def(
            "put",
            [](Pipes& self, std::int32_t peer, const Memory& bytes) {
                return self.put(peer, bytes_of_array(bytes));
            },
            "peer"_a, "bytes"_a, "Put what came; gives how many bytes there was room for.");
    bind_elements(module);
    bind_execution(module);
}

const Registration registration("runtime", bind);

}  // namespace
}  // namespace weft::bindings
