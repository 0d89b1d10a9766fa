// One function a kernel: each adds what it binds to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

void bind_distances(nanobind::module_& module);
void bind_chakra(nanobind::module_& module);
void bind_multitree(nanobind::module_& module);
void bind_periodic(nanobind::module_& module);
void bind_network(nanobind::module_& module);
void bind_rounds(nanobind::module_& module);
void bind_steiner(nanobind::module_& module);
void bind_symmetric(nanobind::module_& module);
void bind_completion(nanobind::module_& module);
void bind_synthesis(nanobind::module_& module);
void bind_unicast(nanobind::module_& module);
void bind_bound(nanobind::module_& module);
void bind_simulate(nanobind::module_& module);
void bind_flow(nanobind::module_& module);
void bind_forwarding(nanobind::module_& module);
void bind_trace_flow(nanobind::module_& module);
void bind_trace_run(nanobind::module_& module);
void bind_program(nanobind::module_& module);
void bind_frames(nanobind::module_& module);
void bind_judge_rounds(nanobind::module_& module);
void bind_verify(nanobind::module_& module);

}  // namespace weft::bindings
