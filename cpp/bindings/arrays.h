// NumPy arrays in and out of the kernels.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/bind.h"

namespace weft::bindings {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Column = nb::ndarray<nb::numpy, const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Maybe = std::optional<Column<T>>;  // a column that may be absent: None in Python
template <class T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <class T>
std::span<const T> view(const Column<T>& column) {
    return {column.data(), column.size()};
}
inline std::span<const std::uint8_t> view(const Column<bool>& column) {
    return {reinterpret_cast<const std::uint8_t*>(column.data()), column.size()};
}
template <class T>
auto view(const Maybe<T>& column) {
    return column ? view(*column) : decltype(view(*column)){};
}
template <std::integral T>
T view(T number) {
    return number;
}

template <class T>
std::vector<T> copy(const Column<T>& column) {
    return std::vector<T>(column.data(), column.data() + column.size());
}

// Hands a vector to Python without copying it.
template <class T>
Array<T> give(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Array<T>(kept->data(), {kept->size()}, owner);
}
template <class... T>
auto give_all(std::vector<T>&&... values) {
    return std::tuple(give(std::move(values))...);
}

// What Python sees of a column's values: truth in bytes, numbers in enumerators.
template <class T>
struct SeenAs : std::type_identity<T> {};
template <>
struct SeenAs<std::uint8_t> : std::type_identity<bool> {};
template <class T>
    requires std::is_enum_v<T>
struct SeenAs<T> : std::underlying_type<T> {};

// A column of a bound object as a property: an array that keeps the object alive. `path` are
// members of members, from the object to the column.
template <class Owner, class... Members>
auto column(Members... path) {
    return [=](nb::handle_t<Owner> self) {
        const auto& values = (nb::cast<const Owner&>(self).*....*path);
        using Seen = typename SeenAs<typename std::decay_t<decltype(values)>::value_type>::type;
        return Array<const Seen>(reinterpret_cast<const Seen*>(values.data()), {values.size()},
                                 self);
    };
}

// One member of each row as a column; `As` is what Python sees, if it is something else.
template <class As = void, class Row, class T>
auto give_column(const std::vector<Row>& rows, T Row::* member) {
    using Value = std::conditional_t<std::is_void_v<As>, T, As>;
    std::vector<Value> values;
    values.reserve(rows.size());
    for (const Row& row : rows) values.push_back(static_cast<Value>(row.*member));
    return give(std::move(values));
}

// Runs a kernel without the interpreter's lock.
template <class Kernel>
auto unlocked(Kernel kernel) {
    const nb::gil_scoped_release release;
    return kernel();
}

}  // namespace weft::bindings
