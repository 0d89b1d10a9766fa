// The compiled core as Python sees it: everything that the other files here registered.
#include <map>
#include <string>

#include "base/threads.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

// Made by the first who asks: files may register in any order.
std::map<std::string, void (*)(nanobind::module_&)>& registered() {
    static std::map<std::string, void (*)(nanobind::module_&)> all;
    return all;
}

}  // namespace

Registration::Registration(const char* name, void (*bind)(nanobind::module_&)) {
    registered().emplace(name, bind);
}

}  // namespace weft::bindings

NB_MODULE(_core, module) {
    // Cached networks live as long as the interpreter; that is no leak.
    nanobind::set_leak_warnings(false);
    weft::prepare_thread();
    module.def("prepare_thread", &weft::prepare_thread);
    for (const auto& [name, bind] : weft::bindings::registered()) bind(module);
}
