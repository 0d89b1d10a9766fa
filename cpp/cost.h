// The cost model, the one implementation of it: integer picoseconds, α-β per link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace weft {

using ps = std::int64_t;
inline constexpr ps never = std::numeric_limits<ps>::max();

struct CostModel {
    bool blocking = false;           // α occupies the link, as in TACOS; else it does not
    bool store_and_forward = false;  // across switches: link after link; else cut-through
};

// One directed link's speed: bytes per second, and α.
struct Speed {
    std::int64_t bandwidth;
    ps latency;
};

// Time to push `bytes` into a link, rounded up; in 128 bits, since 64 overflow above 9.2 MB.
inline ps serialization(std::int64_t bytes, std::int64_t bandwidth) {
    const auto wide = static_cast<unsigned __int128>(bytes) * 1'000'000'000'000u;
    const auto time = (wide + static_cast<unsigned __int128>(bandwidth) - 1) /
                      static_cast<unsigned __int128>(bandwidth);
    constexpr auto most = static_cast<unsigned __int128>(never / 4);
    return static_cast<ps>(time < most ? time : most);
}

// When a hop that starts at 0 holds one of its links: [offset, offset + length).
struct Hold {
    ps offset;
    ps length;
};

// How long a hop over `links` takes; `holds[i]` says when it holds the i-th of them.
//
// Cut-through: bytes over the smallest bandwidth plus the sum of α. Links up to the slowest (the
// first of the smallest bandwidth, whatever the bytes) are held from the hop's start, links after it
// up to the hop's end, each for bytes over its own bandwidth, so a fast link still carries several
// slow flows. Store-and-forward: link after link. Where α blocks, each link is held for its own α
// as well.
inline ps hop(CostModel cost, std::int64_t bytes, std::span<const Speed> links,
              std::span<Hold> holds) {
    ps latency = 0, slowest_time = 0;
    std::size_t slowest = 0;
    for (std::size_t i = 0; i < links.size(); ++i) {
        const ps push = serialization(bytes, links[i].bandwidth);
        const ps held = push + (cost.blocking ? links[i].latency : 0);
        holds[i] = {cost.store_and_forward ? latency : 0, held};
        if (cost.store_and_forward) latency += push;
        latency += links[i].latency;
        if (links[i].bandwidth < links[slowest].bandwidth) slowest = i;
        if (slowest == i) slowest_time = push;
    }
    if (cost.store_and_forward) return latency;
    const ps duration = slowest_time + latency;
    for (std::size_t i = slowest + 1; i < links.size(); ++i)
        holds[i].offset = duration - holds[i].length;
    return duration;
}

}  // namespace weft
