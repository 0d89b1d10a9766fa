#include "planners/steiner/chunk_classes.h"

#include <map>
#include <tuple>

namespace weft {

std::vector<ChunkClass> group_chunks(const Chunks& chunks, const Sizes& sizes) {
    std::vector<ChunkClass> classes;
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, bool>, std::size_t>
        numbers;
    for (std::int32_t chunk = 0; chunk < chunks.size(); ++chunk) {
        const auto pre = chunks.pre[chunk], post = chunks.post[chunk];
        const auto reach = chunks.reach[chunk], size = sizes.of_chunk[chunk];
        const bool reduce = chunks.reduce[chunk] && chunks.sets[pre].size() > 1;
        const auto [found, is_new] =
            numbers.try_emplace({pre, post, reach, size, reduce}, classes.size());
        if (is_new) classes.push_back({pre, post, reach, size, reduce, {}});
        classes[found->second].chunks.push_back(chunk);
    }
    return classes;
}

}  // namespace weft
