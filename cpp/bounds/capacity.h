// How soon a set of links can have carried so much: the arithmetic under every bound.
#pragma once

#include <cstdint>
#include <span>

#include "base/cost.h"

namespace weft {

// Links of one kind: nothing is across one before it `opens`. From then on, as if the first of the
// smallest chunks were across at `first`, and another every `gap`, of which `overhead` is α and
// not bytes.
struct LinkClass {
    ps opens;
    ps first;
    ps gap;
    ps overhead;
    std::int64_t bandwidth;  // bytes per second
    std::int64_t alike = 1;  // how many such links there are
};

// What must cross: whole chunks, no larger than `largest`.
struct Crossing {
    std::int64_t chunks;
    double bytes;
    std::int64_t largest;
};

// The smallest T by which whole chunks can have crossed. A link lets c = floor((T - first) / gap)
// + 1 of the smallest through, so no more chunks; and no more bytes than c of the largest, nor
// than there is time for besides c overheads.
ps time_for_chunks(std::span<const LinkClass> link_classes, const Crossing& crossing);

// The same for bytes that may be cut at will: no byte crosses a link before its `first`, which
// is then α alone. Rounded down, so that it stays a bound.
ps time_for_bytes(std::span<const LinkClass> link_classes, double bytes);

// The smallest T by which the links can have let so many through that these, each weighed with its
// link's weight, make up `needed`. Of a link `opens`, `first` and `gap` count, and its weight is in
// the place of `bandwidth`.
ps time_for_weight(std::span<const LinkClass> link_classes, double needed);

}  // namespace weft
