// When the rows of a run held their links.
#include "base/route_times.h"
#include "engine/simulate.h"

namespace weft {

Occupied occupied(const Run& run, std::span<const ps> start) {
    TimesBySize times(run.network, run.routes, run.cost);
    Occupied all;
    all.duration.reserve(start.size());
    for (std::size_t row = 0; row < start.size(); ++row) {
        const auto& [duration, holds] =
            times.of(run.bytes[run.rows.chunk[row]], run.rows.route[row]);
        all.duration.push_back(duration);
        for (const auto& hold : holds) {
            all.begin.push_back(start[row] + hold.offset);
            all.length.push_back(hold.length);
        }
    }
    return all;
}

}  // namespace weft
