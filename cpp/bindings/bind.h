// Every binding file registers what it adds to the module; no list names them all.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

// What the module is made of, in order of name: the same in every build, whatever the linker does.
// nanobind looks types up when they are used, so no file depends on another's turn.
struct Registration {
    Registration(const char* name, void (*bind)(nanobind::module_&));
};

}  // namespace weft::bindings
