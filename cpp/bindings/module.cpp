// The compiled core as Python sees it. One file a kernel; this one names them.
#include "bind.h"
#include "threads.h"

NB_MODULE(_core, module) {
    // Cached networks live as long as the interpreter; that is no leak.
    nanobind::set_leak_warnings(false);
    weft::prepare_thread();
    module.def("prepare_thread", &weft::prepare_thread);
    weft::bindings::bind_distances(module);
    weft::bindings::bind_chakra(module);
    weft::bindings::bind_multitree(module);
    weft::bindings::bind_network(module);
    weft::bindings::bind_periodic(module);
    weft::bindings::bind_synthesis(module);
    weft::bindings::bind_symmetric(module);
    weft::bindings::bind_rounds(module);
    weft::bindings::bind_completion(module);
    weft::bindings::bind_unicast(module);
    weft::bindings::bind_steiner(module);
    weft::bindings::bind_bound(module);
    weft::bindings::bind_simulate(module);
    weft::bindings::bind_flow(module);
    weft::bindings::bind_forwarding(module);
    weft::bindings::bind_trace_flow(module);
    weft::bindings::bind_trace_run(module);
    weft::bindings::bind_program(module);
    weft::bindings::bind_frames(module);
    weft::bindings::bind_verify(module);
    weft::bindings::bind_judge_rounds(module);
}
