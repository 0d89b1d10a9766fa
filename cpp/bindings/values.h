// Values: what Python makes once of its tables and hands to kernels as one argument.
#pragma once

#include "base/tables.h"
#include "bindings/arrays.h"

namespace weft::bindings {

// An argument; a column that may be absent need not be given.
template <class T>
auto named(const char* name) {
    if constexpr (requires(T column) { column.has_value(); })
        return nb::arg(name) = nb::none();
    else
        return nb::arg(name);
}

// A view of arrays, which it keeps; made of them by name, in the order of the view's members.
template <class View, class... Columns>
struct Value : View {
    explicit Value(Columns... columns) : View{view(columns)...}, kept(std::move(columns)...) {}

    template <class Self = Value, class... Names>
    static nb::class_<Self> bind(nb::module_& module, const char* name, Names... names) {
        return nb::class_<Self>(module, name)
            .def(nb::init<Columns...>(), nb::kw_only(), named<Columns>(names)...);
    }

    std::tuple<Columns...> kept;
};

using BoundRows = Value<RowsView, Column<std::int64_t>, Column<std::int32_t>>;

using BoundChunks =
    Value<Chunks, Column<std::int64_t>, Column<std::int32_t>, Column<std::int32_t>, Column<bool>,
          Column<std::int32_t>, Column<std::int64_t>, Column<std::int32_t>>;

struct BoundTransfers
    : Value<Transfers, Column<std::int32_t>, Column<std::int32_t>, Column<std::int32_t>,
            Column<bool>, Maybe<std::int32_t>, Maybe<std::int64_t>, Maybe<std::int64_t>,
            Maybe<std::int32_t>, Maybe<std::int32_t>, Maybe<std::int64_t>, Maybe<std::int64_t>> {
    using Value::Value;
    bool is_timed() const { return std::get<5>(kept).has_value(); }
};

}  // namespace weft::bindings
