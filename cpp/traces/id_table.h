// Which of several nodes ASTRA-sim starts first: it goes through hash tables of node ids, in the
// order in which the standard library happens to do that.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <version>

namespace weft {

// Nodes by id. The same container with the same insertions and removals goes through them in the
// same order, as long as it is the same library: ASTRA-sim's users have libstdc++.
using IdTable = std::unordered_map<std::uint64_t, std::uint32_t>;

#ifdef __GLIBCXX__
inline constexpr bool orders_as_astra_sim = true;
#else
inline constexpr bool orders_as_astra_sim = false;
#endif

}  // namespace weft
