// Chunks that each go to one NPU, the ways they take, and when they take them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hops.h"
#include "planners/schedule.h"

namespace weft {

struct Unicast {
    std::vector<std::int32_t> src, dst;   // per chunk; if they are the same nothing moves
    std::span<const std::int32_t> reach;  // per chunk: the set of NPUs it may visit, -1 for any
    RowsView sets;                        // ascending
    std::vector<std::int32_t> size;       // per chunk: which of `times` holds for it
    std::vector<HopTimes> times;          // per size

    std::int32_t chunks() const { return static_cast<std::int32_t>(src.size()); }
};

// The hops of every chunk's path, in one arena.
class Paths {
  public:
    explicit Paths(std::size_t chunks) : begin_(chunks, 0), length_(chunks, 0) {}

    std::span<const std::int32_t> operator[](std::int32_t chunk) const {
        return {hops_.data() + begin_[chunk], static_cast<std::size_t>(length_[chunk])};
    }
    std::int64_t hops() const { return total_; }

    void reserve(std::int64_t hops) { hops_.reserve(static_cast<std::size_t>(hops)); }

    // A path that is longer than the one it replaces moves to the end.
    void set(std::int32_t chunk, std::span<const std::int32_t> path) {
        const auto length = static_cast<std::int32_t>(path.size());
        total_ += length - length_[chunk];
        if (length > length_[chunk]) {
            if (static_cast<std::int64_t>(hops_.size()) > 2 * total_ + slack) close_gaps();
            begin_[chunk] = static_cast<std::int64_t>(hops_.size());
            hops_.resize(hops_.size() + path.size());
        }
        length_[chunk] = length;
        std::copy(path.begin(), path.end(), hops_.begin() + begin_[chunk]);
    }

  private:
    static constexpr std::int64_t slack = 4096;

    void close_gaps() {
        std::vector<std::int32_t> kept;
        kept.reserve(static_cast<std::size_t>(total_ + slack));
        for (std::size_t c = 0; c < begin_.size(); ++c) {
            const auto first = hops_.begin() + begin_[c];
            begin_[c] = static_cast<std::int64_t>(kept.size());
            kept.insert(kept.end(), first, first + length_[c]);
        }
        hops_.swap(kept);
    }

    std::vector<std::int64_t> begin_;
    std::vector<std::int32_t> length_, hops_;
    std::int64_t total_ = 0;
};

// Ways on which no link is loaded more than it must be.
struct RoutedPaths {
    Paths paths;
    ps load = 0;             // how long the busiest link is held
    bool all_found = false;  // whether every chunk has a way
};

// `bound`: the whole takes at least that long, so links may be held that long without harm.
// `thrift`: how much the length of paths counts beside loads.
RoutedPaths route(const Hops& hops, const Unicast& unicast, double thrift, std::uint64_t seed,
                  ps bound, Progress& progress);

// Which chunk goes first. A chunk with a long way to go must leave early: its rank is its way's
// part of the longest one, times `urgency`. On top comes something random, up to `freedom` of the
// whole, so that all links get work from the beginning.
struct Precedence {
    double urgency, freedom;
};

// Times for chunks whose paths are decided: whenever links are free, a chunk that waits takes them.
// `load`: how long the busiest link is held.
Schedule schedule_paths(const Hops& hops, const Unicast& unicast, const Paths& paths, ps load,
                        Precedence precedence, std::uint64_t seed, Progress& progress);

}  // namespace weft
