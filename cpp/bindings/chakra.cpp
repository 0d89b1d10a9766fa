#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "bindings/bind.h"
#include "bindings/values.h"
#include "traces/chakra_plan.h"
#include "traces/chakra_read.h"
#include "traces/chakra_write.h"

namespace weft::bindings {
namespace {

using namespace chakra;

template <Known Which>
auto known_getter() {
    return [](nb::handle_t<Nodes> self) {
        const auto& nodes = nb::cast<const Nodes&>(self);
        const auto& values = nodes.known[Which];
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

nb::typed<nb::list, nb::bytes> texts_of(const std::vector<std::string>& texts) {
    nb::typed<nb::list, nb::bytes> list;
    for (const auto& text : texts) list.append(nb::bytes(text.data(), text.size()));
    return list;
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
    for (const auto& text : attribute.texts) values.append(nb::bytes(text.data(), text.size()));
    if (list) return values;
    return values.size() > 0 ? nb::object(values[0]) : nb::none();
}

Attribute attribute_of(const std::string& name, std::uint32_t kind, nb::handle value) {
    Attribute attribute{name, kind};
    if (kind < first_kind || kind > last_kind) throw std::invalid_argument("no such kind");
    const Base base = base_of(kind);
    const auto add = [&](nb::handle one) {
        if (is_text(base)) {
            const auto text = nb::cast<nb::bytes>(one);
            attribute.texts.emplace_back(text.c_str(), text.size());
        } else if (is_real(base)) {
            attribute.reals.push_back(nb::cast<double>(one));
        } else {
            attribute.ints.push_back(nb::cast<std::int64_t>(one));
        }
    };
    if (!is_list(kind)) {
        add(value);
    } else if (!is_text(base) && !is_real(base)) {
        attribute.ints = copy(nb::cast<Column<std::int64_t>>(value));
    } else {
        for (nb::handle one : nb::cast<nb::list>(value)) add(one);
    }
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
    {
        nb::gil_scoped_release free;
        out.reserve(nodes.size() * 64 + 4096);
        write_metadata(out, metadata);
        write_nodes(out, nodes);
    }
    return nb::bytes(out.data(), out.size());
}

nb::tuple read_bytes(nb::bytes file, bool names) {
    Trace trace;
    const std::string_view text(file.c_str(), file.size());
    {
        nb::gil_scoped_release free;
        trace = read_trace(text, names);
    }
    nb::list attributes;
    for (const auto& a : trace.metadata.attributes)
        attributes.append(
            nb::make_tuple(nb::bytes(a.name.data(), a.name.size()), a.kind, values_of(a)));
    const auto& version = trace.metadata.version;
    return nb::make_tuple(nb::bytes(version.data(), version.size()), attributes,
                          std::move(trace.nodes));
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
    nb::class_<Nodes>(module, "ChakraNodes",
                      "One rank's nodes. Times are microseconds here, as the schema has them.")
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
            nb::kw_only(), nb::arg("id"), nb::arg("type"), nb::arg("ctrl_offsets"), nb::arg("ctrl"),
            nb::arg("data_offsets"), nb::arg("data"), nb::arg("start"), nb::arg("duration"),
            nb::arg("present"), nb::arg("comm_src") = nb::none(), nb::arg("comm_dst") = nb::none(),
            nb::arg("comm_size") = nb::none(), nb::arg("comm_tag") = nb::none(),
            nb::arg("msg_chunk_cnt") = nb::none(), nb::arg("msg_chunk_idx") = nb::none(),
            nb::arg("total_chunk_cnt") = nb::none(), nb::arg("comm_type") = nb::none(),
            nb::arg("is_cpu_op") = nb::none(), nb::arg("names") = std::vector<std::string>{},
            nb::arg("groups") = std::vector<std::string>{})
        .def("__len__", &Nodes::size)
        .def_prop_ro("id", column<Nodes>(&Nodes::id))
        .def_prop_ro("type", column<Nodes>(&Nodes::type))
        .def_prop_ro("ctrl_offsets", column<Nodes>([](const Nodes& nodes) -> const auto& {
                         return nodes.ctrl.offsets;
                     }))
        .def_prop_ro(
            "ctrl", column<Nodes>([](const Nodes& nodes) -> const auto& { return nodes.ctrl.ids; }))
        .def_prop_ro("data_offsets", column<Nodes>([](const Nodes& nodes) -> const auto& {
                         return nodes.data.offsets;
                     }))
        .def_prop_ro(
            "data", column<Nodes>([](const Nodes& nodes) -> const auto& { return nodes.data.ids; }))
        .def_prop_ro("start", column<Nodes>(&Nodes::start))
        .def_prop_ro("duration", column<Nodes>(&Nodes::duration))
        .def_prop_ro("present", column<Nodes>(&Nodes::present))
        .def_prop_ro("comm_src", known_getter<comm_src>(), nb::rv_policy::reference)
        .def_prop_ro("comm_dst", known_getter<comm_dst>(), nb::rv_policy::reference)
        .def_prop_ro("comm_size", known_getter<comm_size>(), nb::rv_policy::reference)
        .def_prop_ro("comm_tag", known_getter<comm_tag>(), nb::rv_policy::reference)
        .def_prop_ro("msg_chunk_cnt", known_getter<msg_chunk_cnt>(), nb::rv_policy::reference)
        .def_prop_ro("msg_chunk_idx", known_getter<msg_chunk_idx>(), nb::rv_policy::reference)
        .def_prop_ro("total_chunk_cnt", known_getter<total_chunk_cnt>(), nb::rv_policy::reference)
        .def_prop_ro("comm_type", known_getter<comm_type>(), nb::rv_policy::reference)
        .def_prop_ro("is_cpu_op", known_getter<is_cpu_op>(), nb::rv_policy::reference)
        .def_prop_ro("names", [](const Nodes& nodes) { return texts_of(nodes.names); })
        .def_prop_ro("groups",
                     [](const Nodes& nodes) {
                         auto groups = texts_of(nodes.groups);
                         const std::size_t all = nodes.groups.empty() ? 0 : nodes.size();
                         while (groups.size() < all) groups.append(nb::bytes("", 0));
                         return groups;
                     })
        .def("check", &check_nodes, nb::call_guard<nb::gil_scoped_release>())
        .def("digest", &digest, nb::call_guard<nb::gil_scoped_release>(),
             "The same for nodes with equal ids (0 to n - 1), types and waits, in any order.")
        .def("first_difference", &first_difference, nb::arg("expected"));
}

void bind_plan(nb::module_& module) {
    BoundPace::bind(module, "Pace", "gate", "after", "delay", "piece_count", "piece_index",
                    "pieces");
    nb::class_<BoundPlan>(module, "ChakraPlan")
        .def(
            nb::init<std::int32_t, const BoundTransfers&, Column<std::int64_t>, const BoundPace*>(),
            nb::arg("npus"), nb::arg("rows"), nb::arg("chunk_bytes"),
            nb::arg("pace").none() = nb::none(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 5>())
        .def(
            "nodes", [](BoundPlan& self, std::int32_t npu) { return self.plan.nodes(npu); },
            nb::arg("npu"))
        .def(
            "sent",
            [](const BoundPlan& self, std::int32_t npu) { return give(self.plan.sent(npu)); },
            nb::arg("npu"));
}

void bind(nb::module_& module) {
    bind_nodes(module);
    bind_plan(module);
    module.def("write_chakra", &write_trace, nb::arg("version"), nb::arg("attributes"),
               nb::arg("nodes"),
               nb::sig("def write_chakra(version: str, attributes: list[tuple[str, int, "
                       "typing.Any]], nodes: ChakraNodes) -> bytes"));
    module.def("read_chakra", &read_bytes, nb::arg("file"), nb::arg("names") = false,
               nb::sig("def read_chakra(file: bytes, names: bool = False) -> tuple[bytes, "
                       "list[tuple[bytes, int, typing.Any]], ChakraNodes]"));
}

const Registration registration("chakra", bind);

}  // namespace
}  // namespace weft::bindings
