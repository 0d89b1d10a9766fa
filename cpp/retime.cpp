#include "retime.h"

#include <algorithm>
#include <map>

#include "calendar.h"

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

}  // namespace

Times retime(const Network& network, const Rows& routes, CostModel cost, const Rowset& rows,
             std::span<const std::int64_t> chunk_bytes) {
    std::map<std::int64_t, RouteTimes> by_size;
    std::vector<RouteTimes*> times_of(chunk_bytes.size());
    for (std::size_t c = 0; c < chunk_bytes.size(); ++c)
        times_of[c] = &by_size.try_emplace(chunk_bytes[c], network, routes, cost, chunk_bytes[c])
                           .first->second;

    const std::size_t count = rows.chunk.size(), chunks = chunk_bytes.size();
    Times times{std::vector<ps>(count), std::vector<ps>(count)};
    std::vector<ps> arrived(static_cast<std::size_t>(network.npus) * chunks, 0);
    std::vector<Calendar> calendars(network.links());
    for (std::size_t i = 0; i < count; ++i) {
        const auto chunk = static_cast<std::size_t>(rows.chunk[i]);
        const auto route = rows.route[i];
        const auto links = routes[route];
        auto& costs = *times_of[chunk];
        const ps duration = costs.duration(route);
        const Hold* holds = costs.holds(route);
        ps start = arrived[static_cast<std::size_t>(rows.src[i]) * chunks + chunk];
        start = first_fit(calendars, links, holds, start);
        for (std::size_t k = 0; k < links.size(); ++k)
            calendars[links[k]].take(start + holds[k].offset, holds[k].length);
        times.start[i] = start;
        times.end[i] = start + duration;
        auto& arrival = arrived[static_cast<std::size_t>(rows.dst[i]) * chunks + chunk];
        arrival = std::max(arrival, times.end[i]);
    }
    return times;
}

}  // namespace weft
