// The compiled core as Python sees it. One file a kernel; this one names them.
#include "bind.h"

NB_MODULE(_core, module) {
    weft::bindings::bind_chakra(module);
    weft::bindings::bind_network(module);
}
