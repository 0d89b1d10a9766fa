// A planned schedule on its way to Python.
#pragma once

#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>
#include <vector>

#include "base/hops.h"
#include "bindings/arrays.h"
#include "planners/schedule.h"

namespace weft::bindings {

using Int32 = Array<std::int32_t>;
using Int64 = Array<std::int64_t>;
using Bytes = Array<std::uint8_t>;
using Scheduled = std::tuple<Int32, Int32, Int32, Bytes, Int32, Int64, Int64, Int64, Int32, ps>;

// (chunk, src, dst, reduce, route, start, end, route offsets, route links, time); no routes where
// a route is a link. `times_of(chunk)` are the times of hops for a chunk.
template <class TimesOf>
Scheduled give_schedule(const Hops& hops, Schedule&& schedule, TimesOf times_of) {
    std::vector<std::int32_t> src(schedule.hop.size()), dst(schedule.hop.size());
    std::vector<ps> end(schedule.hop.size());
    {
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < src.size(); ++i) {
            const auto hop = schedule.hop[i];
            src[i] = hops.src[hop];
            dst[i] = hops.dst[hop];
            end[i] = schedule.start[i] + times_of(schedule.chunk[i]).duration[hop];
        }
    }
    auto& route = hops.single_links ? schedule.hop : schedule.route;
    schedule.reduce.resize(schedule.hop.size(), 0);
    return {give(std::move(schedule.chunk)),
            give(std::move(src)),
            give(std::move(dst)),
            give(std::move(schedule.reduce)),
            give(std::move(route)),
            give(std::move(schedule.start)),
            give(std::move(end)),
            give(std::move(schedule.routes.offsets)),
            give(std::move(schedule.routes.items)),
            schedule.time};
}

}  // namespace weft::bindings
