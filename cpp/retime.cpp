#include "retime.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "calendar.h"
#include "radix.h"

namespace weft {
namespace {

// What a hop costs on each route for one size of chunk, worked out when first asked.
class RouteTimes {
  public:
    RouteTimes(const Network& net, const Rows& routes, CostModel cost, std::int64_t bytes)
        : net_(net), routes_(routes), cost_(cost), bytes_(bytes), duration_(routes.size(), -1),
          holds_(routes.items.size()) {}

    ps duration(std::int32_t route) {
        if (duration_[route] < 0) work_out(route);
        return duration_[route];
    }
    const Hold* holds(std::int32_t route) const { return holds_.data() + routes_.offsets[route]; }

  private:
    void work_out(std::int32_t route) {
        speeds_.clear();
        for (auto link : routes_[route]) speeds_.push_back(net_.speed[link]);
        duration_[route] =
            hop(cost_, bytes_, speeds_, {holds_.data() + routes_.offsets[route], speeds_.size()});
    }
    const Network& net_;
    const Rows& routes_;
    CostModel cost_;
    std::int64_t bytes_;
    std::vector<ps> duration_;
    std::vector<Hold> holds_;
    std::vector<Speed> speeds_;
};

// The earliest start from `start` on at which all links of a route are free when it needs them.
ps first_fit(const std::vector<Calendar>& calendars, std::span<const std::int32_t> links,
             const Hold* holds, ps start) {
    for (bool fits = false; !fits;) {
        fits = true;
        for (std::size_t k = 0; k < links.size(); ++k) {
            const ps begin = start + holds[k].offset;
            const ps gap = calendars[links[k]].next_gap(begin, holds[k].length);
            start += gap - begin;
            fits = fits && gap == begin;
        }
    }
    return start;
}

// The next row of the same multicast, for each row; -1 after the last. Empty if there is none.
std::vector<std::int32_t> next_of_multicast(const Network& net, const Rows& routes,
                                            const RowView& rows) {
    if (net.copies.empty()) return {};
    const auto key = [&](std::int32_t row) {
        const auto links = routes[rows.route[row]];
        return std::tuple(rows.chunk[row], rows.src[row], rows.start[row],
                          links.empty() ? -1 : links.front(), row);
    };
    std::vector<std::int32_t> order(rows.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) < key(b); });
    std::vector<std::int32_t> next(rows.size(), -1);
    bool any = false;
    for (std::size_t i = 1; i < order.size(); ++i) {
        const auto [chunk, src, start, link, row] = key(order[i - 1]);
        const auto [chunk2, src2, start2, link2, row2] = key(order[i]);
        if (std::tie(chunk, src, start, link) != std::tie(chunk2, src2, start2, link2)) continue;
        if (link < 0) continue;
        next[row] = row2;
        any = true;
    }
    return any ? next : std::vector<std::int32_t>{};
}

// Rows placed one after the other, in a given order, each as soon as it may.
class Placement {
  public:
    Placement(const Network& net, const Rows& routes, CostModel cost,
              std::span<const std::int64_t> chunk_bytes)
        : routes_(routes), chunks_(chunk_bytes.size()), times_of_(chunks_),
          arrived_(static_cast<std::size_t>(net.npus) * chunks_, 0), calendars_(net.links()) {
        for (std::size_t c = 0; c < chunks_; ++c)
            times_of_[c] = &by_size_.try_emplace(chunk_bytes[c], net, routes, cost, chunk_bytes[c])
                                .first->second;
    }

    void place(std::int32_t chunk, std::int32_t src, std::int32_t dst, std::int32_t route,
               ps& start, ps& end) {
        auto& costs = *times_of_[chunk];
        const ps duration = costs.duration(route);
        const auto links = routes_[route];
        const Hold* holds = costs.holds(route);
        start = first_fit(calendars_, links, holds, arrived(src, chunk));
        end = start + duration;
        for (std::size_t k = 0; k < links.size(); ++k)
            calendars_[links[k]].take(start + holds[k].offset, holds[k].length);
        arrived(dst, chunk) = std::max(arrived(dst, chunk), end);
    }

    // The rows of a multicast, from `row` on: all at once, holding the links they share once. One
    // that would hold a shared link at another time, for other bytes than planned, goes alone.
    void place_multicast(const RowView& rows, const std::vector<std::int32_t>& next,
                         std::int32_t row, Times& times) {
        const auto chunk = rows.chunk[row], src = rows.src[row];
        auto& costs = *times_of_[chunk];
        std::vector<std::int32_t> together, alone;
        links_.clear();
        holds_.clear();
        for (auto one = row; one >= 0; one = next[one]) {
            costs.duration(rows.route[one]);
            (joins(rows.route[one], costs) ? together : alone).push_back(one);
        }
        const ps start = first_fit(calendars_, links_, holds_.data(), arrived(src, chunk));
        for (std::size_t k = 0; k < links_.size(); ++k)
            calendars_[links_[k]].take(start + holds_[k].offset, holds_[k].length);
        for (auto one : together) {
            times.start[one] = start;
            times.end[one] = start + costs.duration(rows.route[one]);
            auto& there = arrived(rows.dst[one], chunk);
            there = std::max(there, times.end[one]);
        }
        for (auto one : alone)
            place(chunk, src, rows.dst[one], rows.route[one], times.start[one], times.end[one]);
    }

  private:
    // Adds a route's links to those of a multicast; not if it would hold one of them otherwise.
    bool joins(std::int32_t route, RouteTimes& costs) {
        const auto links = routes_[route];
        const Hold* holds = costs.holds(route);
        const auto known = links_.size();
        for (std::size_t k = 0; k < links.size(); ++k) {
            const auto found = std::find(links_.begin(), links_.begin() + known, links[k]);
            if (found == links_.begin() + known) {
                links_.push_back(links[k]);
                holds_.push_back(holds[k]);
                continue;
            }
            const Hold other = holds_[found - links_.begin()];
            if (other.offset != holds[k].offset || other.length != holds[k].length) {
                links_.resize(known);
                holds_.resize(known);
                return false;
            }
        }
        return true;
    }

    ps& arrived(std::int32_t npu, std::int32_t chunk) {
        return arrived_[static_cast<std::size_t>(npu) * chunks_ + static_cast<std::size_t>(chunk)];
    }

    const Rows& routes_;
    std::size_t chunks_;
    std::map<std::int64_t, RouteTimes> by_size_;
    std::vector<RouteTimes*> times_of_;
    std::vector<ps> arrived_;
    std::vector<Calendar> calendars_;
    std::vector<std::int32_t> links_;  // of a multicast, and when it holds each
    std::vector<Hold> holds_;
};

Rows turned_round(Rows routes) {
    for (std::int32_t route = 0; route < routes.size(); ++route)
        std::reverse(routes.items.begin() + routes.offsets[route],
                     routes.items.begin() + routes.offsets[route + 1]);
    return routes;
}

ps latest(const std::vector<ps>& times) {
    return times.empty() ? 0 : *std::max_element(times.begin(), times.end());
}

}  // namespace

Times retime(const Network& network, const Rows& routes, CostModel cost, const RowView& rows,
             std::span<const std::int64_t> chunk_bytes) {
    Placement placement(network, routes, cost, chunk_bytes);
    Times times{std::vector<ps>(rows.size()), std::vector<ps>(rows.size(), never)};
    const auto next = next_of_multicast(network, routes, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (times.end[i] != never) continue;  // went with an earlier row
        if (!next.empty() && next[i] >= 0)
            placement.place_multicast(rows, next, static_cast<std::int32_t>(i), times);
        else
            placement.place(rows.chunk[i], rows.src[i], rows.dst[i], rows.route[i],
                            times.start[i], times.end[i]);
    }
    return times;
}

Times tighten(const Network& network, const Rows& routes, CostModel cost, const RowView& rows,
              std::int32_t chunks, std::int64_t bytes, Times times,
              std::vector<std::int32_t>& order) {
    if (!next_of_multicast(network, routes, rows).empty()) {
        order = order_by(times.start);
        return times;
    }
    const std::vector<std::int64_t> sizes(chunks, bytes);
    const Rows back_routes = turned_round(routes);
    const Network back_network = network.reversed();
    auto by_latest_end = [](std::vector<ps> end) {
        const ps last = latest(end);
        for (auto& time : end) time = last - time;
        return order_by(end);
    };
    Times back = times, forth = times;
    Placement backwards(back_network, back_routes, cost, sizes);
    for (auto i : by_latest_end(times.end))
        backwards.place(rows.chunk[i], rows.dst[i], rows.src[i], rows.route[i], back.start[i],
                        back.end[i]);
    Placement forwards(network, routes, cost, sizes);
    for (auto i : by_latest_end(back.end))
        forwards.place(rows.chunk[i], rows.src[i], rows.dst[i], rows.route[i], forth.start[i],
                       forth.end[i]);
    if (latest(forth.end) < latest(times.end)) times = std::move(forth);
    order = order_by(times.start);
    return times;
}

}  // namespace weft
