#include "planners/steiner/partners.h"

#include <algorithm>
#include <numeric>

namespace weft {
namespace {

bool is_direct(const Hops& hops, std::int32_t hop) { return hops.steps[hop].size() == 1; }

// The box of each NPU, numbered by their first NPUs.
std::vector<std::int32_t> boxes_of(const Hops& hops) {
    const auto npus = hops.out.size();
    std::vector<std::int32_t> box(npus, -1), reached;
    std::int32_t boxes = 0;
    for (std::int32_t first = 0; first < npus; ++first) {
        if (box[first] >= 0) continue;
        box[first] = boxes;
        reached.assign(1, first);
        while (!reached.empty()) {
            const auto npu = reached.back();
            reached.pop_back();
            const auto join = [&](std::int32_t hop, std::int32_t other) {
                if (!is_direct(hops, hop) || box[other] >= 0) return;
                box[other] = boxes;
                reached.push_back(other);
            };
            for (auto hop : hops.out[npu]) join(hop, hops.dst[hop]);
            for (auto hop : hops.in[npu]) join(hop, hops.src[hop]);
        }
        ++boxes;
    }
    return box;
}

std::vector<std::int32_t> all(const Hops& hops) {
    std::vector<std::int32_t> hop(hops.count());
    std::iota(hop.begin(), hop.end(), 0);
    return hop;
}

}  // namespace

std::vector<std::int32_t> hops_to_partners(const Hops& hops) {
    const auto npus = hops.out.size();
    const auto box = boxes_of(hops);
    const auto boxes = npus == 0 ? 0 : *std::ranges::max_element(box) + 1;
    const Rows members = group_by(box, boxes);
    if (hops.single_links || boxes < 2) return all(hops);
    for (std::int32_t b = 0; b < boxes; ++b)
        if (members[b].size() < 2) return all(hops);
    // By box: who sends through switches to the next one, and who receives there.
    std::vector<std::int32_t> partner(npus, -1);
    for (std::int32_t b = 0; b < boxes; ++b) {
        const auto next = (b + 1) % boxes;
        std::vector<std::int32_t> senders, receivers;
        for (auto npu : members[b])
            if (std::ranges::any_of(hops.out[npu], [&](auto hop) {
                    return !is_direct(hops, hop) && box[hops.dst[hop]] == next;
                }))
                senders.push_back(npu);
        for (auto npu : members[next])
            if (std::ranges::any_of(hops.in[npu], [&](auto hop) {
                    return !is_direct(hops, hop) && box[hops.src[hop]] == b;
                }))
                receivers.push_back(npu);
        for (std::size_t i = 0; i < senders.size(); ++i)
            partner[senders[i]] = receivers[i % receivers.size()];
    }
    std::vector<std::int32_t> kept;
    for (std::int32_t hop = 0; hop < hops.count(); ++hop)
        if (is_direct(hops, hop) || partner[hops.src[hop]] == hops.dst[hop]) kept.push_back(hop);
    return kept;
}

Hops only(const Hops& hops, const std::vector<std::int32_t>& kept) {
    Hops some;
    some.bundles = hops.bundles;
    some.copied = hops.copied;
    some.multicast = hops.multicast;
    some.single_links = false;
    for (auto hop : kept) {
        some.src.push_back(hops.src[hop]);
        some.dst.push_back(hops.dst[hop]);
        const auto steps = hops.steps[hop];
        some.steps.items.insert(some.steps.items.end(), steps.begin(), steps.end());
        some.steps.close();
    }
    some.out = group_by(some.src, hops.out.size());
    some.in = group_by(some.dst, hops.in.size());
    return some;
}

HopTimes only(const Hops& hops, const HopTimes& times, const std::vector<std::int32_t>& kept) {
    HopTimes some;
    for (auto hop : kept) {
        some.duration.push_back(times.duration[hop]);
        for (auto i = hops.steps.offsets[hop]; i < hops.steps.offsets[hop + 1]; ++i)
            some.holds.push_back(times.holds[i]);
    }
    return some;
}

}  // namespace weft
