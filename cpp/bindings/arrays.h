// NumPy arrays in and out of the kernels.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/network.h"

namespace weft::bindings {

namespace nb = nanobind;

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <class T>
std::span<const T> view(const Column<T>& column) {
    return {column.data(), column.size()};
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

inline Rows rows(const Column<std::int64_t>& offsets, const Column<std::int32_t>& items) {
    return {copy(offsets), copy(items)};
}

}  // namespace weft::bindings
