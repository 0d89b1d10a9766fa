#include "retime.h"

#include <algorithm>
#include <map>

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

  private:
    ps& arrived(std::int32_t npu, std::int32_t chunk) {
        return arrived_[static_cast<std::size_t>(npu) * chunks_ + static_cast<std::size_t>(chunk)];
    }

    const Rows& routes_;
    std::size_t chunks_;
    std::map<std::int64_t, RouteTimes> by_size_;
    std::vector<RouteTimes*> times_of_;
    std::vector<ps> arrived_;
    std::vector<Calendar> calendars_;
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
    Times times{std::vector<ps>(rows.size()), std::vector<ps>(rows.size())};
    for (std::size_t i = 0; i < rows.size(); ++i)
        placement.place(rows.chunk[i], rows.src[i], rows.dst[i], rows.route[i], times.start[i],
                        times.end[i]);
    return times;
}

Times tighten(const Network& network, const Rows& routes, CostModel cost, const RowView& rows,
              std::int32_t chunks, std::int64_t bytes, Times times,
              std::vector<std::int32_t>& order) {
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
