// The cost model, the one implementation of it: integer picoseconds, α-β per link.
#pragma once

#include <algorithm>
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

inline constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

// One directed link's speed: bytes per second, and α; and how many bytes the switch at its end can
// hold back (NPUs always take what comes).
struct Speed {
    std::int64_t bandwidth;
    ps latency;
    std::int64_t buffer = unlimited;
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
    bool operator==(const Hold&) const = default;
};

// Back-pressure, cut-through: a flow runs ahead of a slower link, up to the slowest, by no more
// than the buffers between the two; what is beyond them passes at that link's pace.
inline void hold_back(CostModel cost, std::int64_t bytes, std::span<const Speed> links,
                      std::size_t slowest, std::span<Hold> holds) {
    const auto lengthen = [&](std::size_t held, std::size_t by, std::int64_t rest) {
        const ps own = cost.blocking ? links[held].latency : 0;
        holds[held].length =
            std::max(holds[held].length, serialization(rest, links[by].bandwidth) + own);
    };
    for (std::size_t i = 0; i < links.size(); ++i) {
        std::int64_t rest = bytes;
        for (std::size_t j = i; j < slowest; ++j) {
            if ((rest -= std::min(rest, links[j].buffer)) == 0) break;
            lengthen(i, j + 1, rest);
        }
        rest = bytes;
        for (std::size_t j = i; j > slowest; --j) {
            if ((rest -= std::min(rest, links[j - 1].buffer)) == 0) break;
            lengthen(i, j - 1, rest);
        }
    }
}

// How long a hop over `links` takes; `holds[i]` says when it holds the i-th of them.
//
// Cut-through: bytes over the smallest bandwidth plus the sum of α. Links up to the slowest (the
// first of the smallest bandwidth, whatever the bytes) are held from the hop's start, links after
// it up to the hop's end, each for bytes over its own bandwidth, so a fast link still carries
// several slow flows; but where the switches between it and a slower link cannot hold all bytes,
// for as long as that link takes for the rest. Store-and-forward: link after link. Where α blocks,
// each link is held for its own α as well.
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
    hold_back(cost, bytes, links, slowest, holds);
    const ps duration = slowest_time + latency;
    for (std::size_t i = slowest + 1; i < links.size(); ++i)
        holds[i].offset = duration - holds[i].length;
    return duration;
}

}  // namespace weft
