#include "bounds/capacity.h"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace weft {
namespace {

// More than the error of a sum of doubles over so many links, as a part of it.
double sum_error(std::span<const LinkClass> link_classes) {
    return 1e-12 + 1e-15 * static_cast<double>(link_classes.size());
}

// The smallest T in [low, high] with enough(T); enough is monotone and holds at `high`.
template <class Enough>
ps smallest(ps low, ps high, Enough enough) {
    return *std::ranges::partition_point(std::views::iota(low, high),
                                         [&](ps time) { return !enough(time); });
}

}  // namespace

ps time_for_chunks(std::span<const LinkClass> link_classes, const Crossing& crossing) {
    if (crossing.chunks <= 0) return 0;
    if (link_classes.empty()) return never;
    ps high = never;  // all of them, the largest, over the one link that would be first to finish
    for (const auto& link_class : link_classes) {
        const auto each =
            std::max(link_class.gap,
                     serialization(crossing.largest, link_class.bandwidth) + link_class.overhead);
        const auto time =
            static_cast<unsigned __int128>(crossing.chunks) * static_cast<unsigned __int128>(each) +
            static_cast<unsigned __int128>(std::max(link_class.first, link_class.opens));
        if (time < static_cast<unsigned __int128>(high)) high = static_cast<ps>(time);
    }
    const auto largest = static_cast<double>(crossing.largest);
    const double enough_bytes = crossing.bytes * (1 - sum_error(link_classes));
    return smallest(0, high, [&](ps time) {
        __int128 through = 0;
        double bytes = 0;
        for (const auto& link_class : link_classes) {
            if (time < std::max(link_class.first, link_class.opens)) continue;
            const auto count =
                std::min((time - link_class.first) / link_class.gap + 1, crossing.chunks);
            // The first hold may have begun before `first`, by as much as the largest takes.
            const auto room =
                static_cast<double>(time - link_class.first - (count - 1) * link_class.overhead) *
                    static_cast<double>(link_class.bandwidth) * 1e-12 +
                largest;
            const auto full = static_cast<double>(count) * largest;
            through += static_cast<__int128>(count) * link_class.alike;
            bytes += std::max(std::min(full, room), full - largest) *
                     static_cast<double>(link_class.alike);
            if (through >= crossing.chunks && bytes >= enough_bytes) return true;
        }
        return false;
    });
}

ps time_for_bytes(std::span<const LinkClass> link_classes, double bytes) {
    if (bytes <= 0) return 0;
    if (link_classes.empty()) return never;
    // Rate and backlog of the links that are open by T grow at each `first`: bisect in doubles,
    // then step down by more than their error.
    double high = static_cast<double>(never);
    for (const auto& link_class : link_classes)
        high = std::min(high, static_cast<double>(std::max(link_class.first, link_class.opens)) +
                                  bytes * 1e12 / static_cast<double>(link_class.bandwidth));
    double low = 0;
    for (int i = 0; i < 100 && high - low > 0.25; ++i) {
        const double middle = (low + high) / 2;
        double carried = 0;
        for (const auto& link_class : link_classes)
            if (middle >= static_cast<double>(link_class.opens))
                carried += std::max(0.0, middle - static_cast<double>(link_class.first)) *
                           static_cast<double>(link_class.bandwidth) *
                           static_cast<double>(link_class.alike);
        (carried >= bytes * 1e12 ? high : low) = middle;
    }
    return static_cast<ps>(std::floor(low * (1 - sum_error(link_classes))));
}

ps time_for_weight(std::span<const LinkClass> link_classes, double needed) {
    if (needed <= 0) return 0;
    return smallest(0, never, [&](ps time) {
        double through = 0;
        for (const auto& link_class : link_classes) {
            if (time < std::max(link_class.first, link_class.opens)) continue;
            through += static_cast<double>(link_class.bandwidth) *
                       static_cast<double>(link_class.alike) *
                       static_cast<double>((time - link_class.first) / link_class.gap + 1);
        }
        return through >= needed;
    });
}

}  // namespace weft
