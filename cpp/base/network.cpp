#include "base/network.h"

#include <utility>

#include "base/grouping.h"

namespace weft {

Rows group_by(std::span<const std::int32_t> keys, std::int32_t count) {
    auto groups = grouped<std::int32_t>(static_cast<std::size_t>(count), [&](const auto& add) {
        for (std::size_t i = 0; i < keys.size(); ++i) add(keys[i], i);
    });
    return {std::move(groups.offsets), std::move(groups.items)};
}

Network::Network(std::int32_t npu_count, std::int32_t switch_count, std::vector<std::int32_t> from,
                 std::vector<std::int32_t> to, std::vector<Speed> speeds,
                 std::vector<std::int64_t> buffers, std::vector<std::uint8_t> copying,
                 std::vector<std::uint8_t> adding)
    : npus(npu_count), switches(switch_count), src(std::move(from)), dst(std::move(to)),
      speed(std::move(speeds)), buffer(std::move(buffers)), copies(std::move(copying)),
      adds(std::move(adding)), out(group_by(src, nodes())), in(group_by(dst, nodes())) {
    for (std::int32_t link = 0; link < links(); ++link) speed[link].buffer = buffer_of(dst[link]);
}

}  // namespace weft
