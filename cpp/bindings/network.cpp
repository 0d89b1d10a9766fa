#include "base/network.h"

#include "bindings/arrays.h"
#include "bindings/bind.h"

namespace weft::bindings {
namespace {

void bind(nb::module_& module) {
    nb::class_<CostModel>(module, "CostModel")
        .def(nb::init<bool, bool>(), nb::arg("blocking"), nb::arg("store_and_forward"));

    nb::class_<Network>(module, "Network")
        .def(
            "__init__",
            [](Network* self, std::int32_t npus, std::int32_t switches, Column<std::int32_t> src,
               Column<std::int32_t> dst, Column<std::int64_t> bandwidth,
               Column<std::int64_t> latency, Column<std::int64_t> buffer,
               Column<std::uint8_t> copies) {
                std::vector<Speed> speed(src.size());
                for (std::size_t i = 0; i < speed.size(); ++i)
                    speed[i] = {bandwidth.data()[i], latency.data()[i]};
                new (self) Network(npus, switches, copy(src), copy(dst), std::move(speed),
                                   copy(buffer), copy(copies));
            },
            nb::arg("npus"), nb::arg("switches"), nb::arg("src"), nb::arg("dst"),
            nb::arg("bandwidth"), nb::arg("latency"), nb::arg("buffer"), nb::arg("copies"));
}

const Registration registration("network", bind);

}  // namespace
}  // namespace weft::bindings
