// Python's bytes as texts, and back.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>
#include <vector>

namespace weft::bindings {

inline std::string_view text_of(const nanobind::bytes& bytes) {
    return {bytes.c_str(), bytes.size()};
}
inline auto bytes_of(std::string_view text) { return nanobind::bytes(text.data(), text.size()); }
inline auto bytes_of(const std::vector<std::string>& texts) {
    nanobind::typed<nanobind::list, nanobind::bytes> list;
    for (const auto& text : texts) list.append(bytes_of(text));
    return list;
}

}  // namespace weft::bindings
