// NumPy arrays in and out of the kernels.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft::bindings {

namespace nb = nanobind;

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

// A column of a bound object as a property: an array that keeps the object alive. `get` is a
// member, or what returns a reference to one; `As` is what its values are for Python, if they are
// not what they are here.
template <class Owner, class As = void, class Get>
auto column(Get get) {
    return [get](nb::handle_t<Owner> self) {
        const auto& values = std::invoke(get, nb::cast<const Owner&>(self));
        using Value = typename std::decay_t<decltype(values)>::value_type;
        using Seen = std::conditional_t<std::is_void_v<As>, Value, As>;
        static_assert(sizeof(Seen) == sizeof(Value));
        return Array<const Seen>(reinterpret_cast<const Seen*>(values.data()), {values.size()},
                                 self);
    };
}

// Runs a kernel without the interpreter's lock.
template <class Kernel>
auto unlocked(Kernel kernel) {
    const nb::gil_scoped_release release;
    return kernel();
}

}  // namespace weft::bindings
