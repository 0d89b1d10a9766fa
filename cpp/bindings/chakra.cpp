#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "bindings/bytes.h"
#include "bindings/names.h"
#include "bindings/values.h"
#include "traces/chakra_graph.h"
#include "traces/chakra_plan.h"
#include "traces/chakra_read.h"
#include "traces/chakra_write.h"

namespace weft::bindings {
namespace {

using namespace chakra;

// A column of all nodes, whether or not the last ones have the attribute.
auto known_getter(std::size_t attribute) {
    return [attribute](nb::handle_t<Nodes> self) {
        const auto& nodes = nb::cast<const Nodes&>(self);
        const auto& values = nodes.known[attribute];
        if (values.size() == nodes.size())
            return Array<const std::int64_t>(values.data(), {values.size()}, self);
        std::vector<std::int64_t> whole = values;
        whole.resize(nodes.size());
        return Array<const std::int64_t>(give(std::move(whole)));
    };
}

Waits waits_of(const Column<std::int64_t>& offsets, const Column<std::uint64_t>& ids,
               std::size_t nodes) {
    Waits waits{copy(offsets), copy(ids)};
    const auto& marks = waits.offsets;
    if (marks.size() != nodes + 1 || marks.front() != 0 ||
        marks.back() != static_cast<std::int64_t>(ids.size()) ||
        !std::is_sorted(marks.begin(), marks.end()))
        throw std::invalid_argument("the offsets of the dependencies do not fit the nodes");
    return waits;
}

void check_lengths(const Nodes& nodes) {
    const std::size_t n = nodes.size();
    bool fits = nodes.type.size() == n && nodes.start.size() == n && nodes.duration.size() == n &&
                nodes.present.size() == n && (nodes.names.empty() || nodes.names.size() == n);
    fits = fits && (nodes.groups.empty() || nodes.groups.size() == n);
    unsigned used = 0;
    for (const auto bits : nodes.present) used |= bits;
    for (std::size_t k = 0; k < known_count; ++k) {
        const std::size_t length = nodes.known[k].size();
        fits = fits && (length == n || (length == 0 && !(used >> k & 1)));
    }
    if (!fits) throw std::invalid_argument("the columns of the nodes differ in length");
}

nb::object values_of(const Attribute& attribute) {
    const bool list = attribute.kind != 0 && is_list(attribute.kind);
    if (list && !is_text(base_of(attribute.kind))) {
        if (is_real(base_of(attribute.kind)))
            return nb::cast(give(std::vector<double>(attribute.reals)));
        return nb::cast(give(std::vector<std::int64_t>(attribute.ints)));
    }
    nb::list values;
    for (const auto value : attribute.ints) values.append(value);
    for (const auto value : attribute.reals) values.append(value);
    for (const auto& text : attribute.texts) values.append(bytes_of(text));
    if (list) return values;
    return values.size() > 0 ? nb::object(values[0]) : nb::none();
}

Attribute attribute_of(const std::string& name, std::uint32_t kind, nb::handle value) {
    Attribute attribute{name, kind};
    if (kind < first_kind || kind > last_kind) throw std::invalid_argument("no such kind");
    const Base base = base_of(kind);
    const auto add = [&](nb::handle one) {
        if (is_text(base))
            attribute.texts.emplace_back(text_of(nb::cast<nb::bytes>(one)));
        else if (is_real(base))
            attribute.reals.push_back(nb::cast<double>(one));
        else
            attribute.ints.push_back(nb::cast<std::int64_t>(one));
    };
    if (!is_list(kind))
        add(value);
    else if (!is_text(base) && !is_real(base))
        attribute.ints = copy(nb::cast<Column<std::int64_t>>(value));
    else
        for (nb::handle one : nb::cast<nb::list>(value)) add(one);
    return attribute;
}

nb::bytes write_trace(const std::string& version, nb::list attributes, const Nodes& nodes) {
    Metadata metadata{version, {}};
    for (nb::handle item : attributes) {
        const auto parts = nb::cast<nb::tuple>(item);
        metadata.attributes.push_back(attribute_of(nb::cast<std::string>(parts[0]),
                                                   nb::cast<std::uint32_t>(parts[1]), parts[2]));
    }
    std::string out;
    unlocked([&] {
        out.reserve(nodes.size() * 64 + 4096);
        write_metadata(out, metadata);
        write_nodes(out, nodes);
    });
    return bytes_of(out);
}

nb::tuple read_bytes(nb::bytes file, bool names) {
    Trace trace = unlocked([&, text = text_of(file)] { return read_trace(text, names); });
    nb::list attributes;
    for (const auto& a : trace.metadata.attributes)
        attributes.append(nb::make_tuple(bytes_of(a.name), a.kind, values_of(a)));
    return nb::make_tuple(bytes_of(trace.metadata.version), attributes, std::move(trace.nodes));
}

using BoundPace = Value<Pace, Maybe<bool>, Maybe<std::int32_t>, Maybe<std::int32_t>,
                        Maybe<std::int32_t>, Maybe<std::int32_t>, std::int32_t>;

// The plan with the array that is no part of its table.
struct BoundPlan {
    BoundPlan(std::int32_t npus, const BoundTransfers& rows, Column<std::int64_t> chunk_bytes,
              const BoundPace* pace)
        : kept(std::move(chunk_bytes)), plan(rows, view(kept), npus, pace ? Pace(*pace) : Pace{}) {}

    Column<std::int64_t> kept;
    Plan plan;
};

using Known64 = Maybe<std::int64_t>;

std::vector<std::int64_t> known(const Known64& column) {
    return column ? copy(*column) : std::vector<std::int64_t>{};
}

void bind_nodes(nb::module_& module) {
    auto bound =
        bind_members<&Nodes::id, &Nodes::type, &Nodes::start, &Nodes::duration, &Nodes::present>(
            nb::class_<Nodes>(
                module, "ChakraNodes",
                "One rank's nodes. Times are microseconds here, as the schema has them."));
    bound
        .def(
            "__init__",
            [](Nodes* self, Column<std::uint64_t> id, Column<std::int32_t> type,
               Column<std::int64_t> ctrl_offsets, Column<std::uint64_t> ctrl,
               Column<std::int64_t> data_offsets, Column<std::uint64_t> data,
               Column<std::uint64_t> start, Column<std::uint64_t> duration,
               Column<std::uint16_t> present, Known64 src, Known64 dst, Known64 size, Known64 tag,
               Known64 chunk_cnt, Known64 chunk_idx, Known64 chunks, Known64 kind, Known64 cpu,
               std::vector<std::string> names, std::vector<std::string> groups) {
                Nodes nodes{copy(id),
                            copy(type),
                            waits_of(ctrl_offsets, ctrl, id.size()),
                            waits_of(data_offsets, data, id.size()),
                            copy(start),
                            copy(duration),
                            copy(present),
                            {known(src), known(dst), known(size), known(tag), known(chunk_cnt),
                             known(chunk_idx), known(chunks), known(kind), known(cpu)},
                            std::move(names),
                            std::move(groups)};
                check_lengths(nodes);
                new (self) Nodes(std::move(nodes));
            },
            nb::kw_only(), "id"_a, "type"_a, "ctrl_offsets"_a, "ctrl"_a, "data_offsets"_a, "data"_a,
            "start"_a, "duration"_a, "present"_a, "comm_src"_a = nb::none(),
            "comm_dst"_a = nb::none(), "comm_size"_a = nb::none(), "comm_tag"_a = nb::none(),
            "msg_chunk_cnt"_a = nb::none(), "msg_chunk_idx"_a = nb::none(),
            "total_chunk_cnt"_a = nb::none(), "comm_type"_a = nb::none(),
            "is_cpu_op"_a = nb::none(), "names"_a = std::vector<std::string>{},
            "groups"_a = std::vector<std::string>{})
        .def("__len__", &Nodes::size)
        .def_prop_ro("ctrl_offsets", column<Nodes>(&Nodes::ctrl, &Waits::offsets))
        .def_prop_ro("ctrl", column<Nodes>(&Nodes::ctrl, &Waits::items))
        .def_prop_ro("data_offsets", column<Nodes>(&Nodes::data, &Waits::offsets))
        .def_prop_ro("data", column<Nodes>(&Nodes::data, &Waits::items))
        .def_prop_ro("names", [](const Nodes& nodes) { return bytes_of(nodes.names); })
        .def_prop_ro("groups",
                     [](const Nodes& nodes) {
                         auto groups = bytes_of(nodes.groups);
                         const std::size_t all = nodes.groups.empty() ? 0 : nodes.size();
                         while (groups.size() < all) groups.append(bytes_of(""));
                         return groups;
                     })
        .def(
            "check", [](const Nodes& nodes) { check_nodes(nodes); },
            nb::call_guard<nb::gil_scoped_release>())
        .def("digest", &digest, nb::call_guard<nb::gil_scoped_release>(),
             "The same for nodes with equal ids (0 to n - 1), types and waits, in any order.")
        .def("first_difference", &first_difference, "expected"_a);
    for (std::size_t k = 0; k < known_count; ++k)
        bound.def_prop_ro(known_attributes[k].name.data(), known_getter(k),
                          nb::rv_policy::reference);
}

void bind_plan(nb::module_& module) {
    BoundPace::bind(module, "Pace", "gate", "after", "delay", "piece_count", "piece_index",
                    "pieces");
    nb::class_<BoundPlan>(module, "ChakraPlan")
        .def(
            nb::init<std::int32_t, const BoundTransfers&, Column<std::int64_t>, const BoundPace*>(),
            "npus"_a, "rows"_a, "chunk_bytes"_a, "pace"_a.none() = nb::none(),
            nb::keep_alive<1, 3>(), nb::keep_alive<1, 5>())
        .def(
            "nodes", [](BoundPlan& self, std::int32_t npu) { return self.plan.nodes(npu); },
            "npu"_a)
        .def(
            "sent",
            [](const BoundPlan& self, std::int32_t npu) { return give(self.plan.sent(npu)); },
            "npu"_a);
}

void bind(nb::module_& module) {
    bind_nodes(module);
    bind_plan(module);
    module.def("write_chakra", &write_trace, "version"_a, "attributes"_a, "nodes"_a,
               nb::sig("def write_chakra(version: str, attributes: list[tuple[str, int, "
                       "typing.Any]], nodes: ChakraNodes) -> bytes"));
    module.def("read_chakra", &read_bytes, "file"_a, "names"_a = false,
               nb::sig("def read_chakra(file: bytes, names: bool = False) -> tuple[bytes, "
                       "list[tuple[bytes, int, typing.Any]], ChakraNodes]"));
}

const Registration registration("chakra", bind);

}  // namespace
}  // namespace weft::bindings
