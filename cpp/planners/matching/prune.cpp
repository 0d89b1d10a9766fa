#include "planners/matching/prune.h"

#include <vector>

#include "base/chunk_sets.h"

namespace weft {

void prune(const Hops& hops, const Chunks& chunks, Schedule& schedule) {
    ChunkSets needed(hops.out.size(), chunks.size());
    for (std::int32_t chunk = 0; chunk < chunks.size(); ++chunk)
        for (auto npu : chunks.takers(chunk)) needed.add(npu, chunk);
    std::vector<bool> kept(schedule.chunk.size());
    std::size_t count = 0;
    for (std::size_t i = kept.size(); i-- > 0;) {
        const auto hop = schedule.hop[i];
        const auto chunk = static_cast<std::uint32_t>(schedule.chunk[i]);
        kept[i] = needed.has(hops.dst[hop], chunk);
        if (!kept[i]) continue;
        needed.add(hops.src[hop], chunk);
        ++count;
    }
    if (count == kept.size()) return;
    auto keep = [&](auto& column) {
        if (column.empty()) return;
        std::size_t next = 0;
        for (std::size_t i = 0; i < kept.size(); ++i)
            if (kept[i]) column[next++] = column[i];
        column.resize(count);
    };
    keep(schedule.chunk);
    keep(schedule.hop);
    keep(schedule.route);
    keep(schedule.start);
}

}  // namespace weft
