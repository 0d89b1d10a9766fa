// Enumerators and members, bound under the names that they have here.
#pragma once

#include <string>
#include <string_view>

#include "bindings/arrays.h"

namespace weft::bindings {

// What an enumerator or a member is called, without what it belongs to. Compilers write it out in
// the name of a function; a number that is no enumerator's stands there behind its type in
// brackets.
template <auto named>
constexpr auto spelled() {
    std::string_view text = __PRETTY_FUNCTION__;
    text = text.substr(0, text.find_first_of(";]", text.find("named = ")));
    return text.substr(text.rfind(':') + 1);
}

// Binds the enumerators, which count from `number` on.
template <class Enum, int number = 0>
void bind_values(nb::enum_<Enum> bound) {
    constexpr std::string_view name = spelled<static_cast<Enum>(number)>();
    if constexpr (name.find(')') == name.npos) {
        bound.value(std::string(name).c_str(), static_cast<Enum>(number));
        bind_values<Enum, number + 1>(bound);
    }
}
template <class Enum>
void bind_enum(nb::module_& module, const char* name) {
    bind_values(nb::enum_<Enum>(module, name));
}

template <auto member, class Owner>
void bind_member(nb::class_<Owner>& bound) {
    const std::string name(spelled<member>());
    if constexpr (requires(const Owner& owner) { (owner.*member).data(); })
        bound.def_prop_ro(name.c_str(), column<Owner>(member));
    else
        bound.def_ro(name.c_str(), member);
}
// Binds members that can be read: vectors as arrays, others as they are.
template <auto... members, class Owner>
nb::class_<Owner> bind_members(nb::class_<Owner> bound) {
    (bind_member<members>(bound), ...);
    return bound;
}

}  // namespace weft::bindings
