#include "planners/retime.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/calendar.h"
#include "base/radix.h"
#include "base/route_times.h"

namespace weft {
namespace {

// When each chunk has arrived at each NPU; 0 where no row brought it. A table where most NPUs get
// most chunks, else a list a chunk: paths of a million chunks would need gigabytes.
class Arrivals {
  public:
    Arrivals(const Transfers& rows, std::int32_t npus, std::size_t chunks) : chunks_(chunks) {
        const auto cells = static_cast<std::size_t>(npus) * chunks;
        if (cells <= 8 * rows.size()) {
            table_.assign(cells, 0);
            return;
        }
        first_.assign(chunks + 1, 0);
        for (auto chunk : rows.chunk) ++first_[chunk + 1];
        for (std::size_t c = 0; c < chunks; ++c) first_[c + 1] += first_[c];
        count_.assign(chunks, 0);
        list_.resize(rows.size());
    }

    ps at(std::int32_t npu, std::int32_t chunk) const {
        if (first_.empty()) return table_[cell(npu, chunk)];
        const auto* entry = find(npu, chunk);
        return entry == nullptr ? 0 : entry->time;
    }
    // Keeps the latest of several.
    void note(std::int32_t npu, std::int32_t chunk, ps time) {
        if (first_.empty()) {
            auto& known = table_[cell(npu, chunk)];
            known = std::max(known, time);
        } else if (const auto* known = find(npu, chunk)) {
            auto& entry = list_[known - list_.data()];
            entry.time = std::max(entry.time, time);
        } else {
            list_[first_[chunk] + count_[chunk]++] = {time, npu};
        }
    }

  private:
    struct Entry {
        ps time;
        std::int32_t npu;
    };
    std::size_t cell(std::int32_t npu, std::int32_t chunk) const {
        return static_cast<std::size_t>(npu) * chunks_ + static_cast<std::size_t>(chunk);
    }
    const Entry* find(std::int32_t npu, std::int32_t chunk) const {
        const auto* first = list_.data() + first_[chunk];
        for (const auto* entry = first + count_[chunk]; entry != first;)  // the last one, mostly
            if ((--entry)->npu == npu) return entry;
        return nullptr;
    }

    std::size_t chunks_;
    std::vector<ps> table_;
    std::vector<std::int64_t> first_;  // per chunk: where its list begins, with room for all rows
    std::vector<std::int32_t> count_;
    std::vector<Entry> list_;
};

// Rows that are one transmission: for each row the next of the same multicast, or of the same sum
// in a switch, in their order; -1 after the last. Empty if there are none.
std::vector<std::int32_t> next_of_transmission(const Network& net, RowsView routes,
                                               const Transfers& rows) {
    if (net.copies.empty() && net.adds.empty()) return {};
    const auto key = [&](std::int32_t row) {
        const auto links = routes[rows.route[row]];
        const bool sum = rows.reduce[row];
        const bool alone = links.empty() || (sum ? net.adds : net.copies).empty();
        const std::int32_t link = alone ? -1 : sum ? links.back() : links.front();
        return std::tuple(rows.chunk[row], sum, sum ? rows.dst[row] : rows.src[row],
                          sum ? rows.end[row] : rows.start[row], link, row);
    };
    std::vector<std::int32_t> order(rows.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) < key(b); });
    std::vector<std::int32_t> next(rows.size(), -1);
    bool any = false;
    for (std::size_t i = 1; i < order.size(); ++i) {
        const auto [chunk, sum, npu, time, link, row] = key(order[i - 1]);
        const auto [chunk2, sum2, npu2, time2, link2, row2] = key(order[i]);
        if (std::tie(chunk, sum, npu, time, link) != std::tie(chunk2, sum2, npu2, time2, link2))
            continue;
        if (link < 0) continue;
        next[row] = row2;
        any = true;
    }
    return any ? next : std::vector<std::int32_t>{};
}

// Rows placed one after the other, in a given order, each as soon as it may.
class Placement {
  public:
    Placement(const Timing& timing, const Transfers& rows,
              std::span<const std::int64_t> chunk_bytes)
        : routes_(timing.routes), chunk_bytes_(chunk_bytes),
          times_(timing.network, timing.routes, timing.cost),
          arrivals_(rows, timing.network.npus, chunk_bytes.size()),
          calendars_(timing.network.links()) {}

    void place(std::int32_t chunk, std::int32_t src, std::int32_t dst, std::int32_t route,
               ps& start, ps& end) {
        const auto& [duration, holds] = times_.of(chunk_bytes_[chunk], route);
        const auto links = routes_[route];
        start = calendars_.first_fit(links, holds, arrivals_.at(src, chunk));
        end = start + duration;
        calendars_.take(links, holds, start);
        arrivals_.note(dst, chunk, end);
    }

    // The rows of a multicast, from `row` on: all at once, holding the links they share once. One
    // that would hold a shared link at another time, for other bytes than planned, goes alone.
    void place_multicast(const Transfers& rows, const std::vector<std::int32_t>& next,
                         std::int32_t row, Times& times) {
        const auto chunk = rows.chunk[row], src = rows.src[row];
        std::vector<std::int32_t> together, alone;
        links_.clear();
        holds_.clear();
        for (auto one = row; one >= 0; one = next[one])
            (joins(chunk, rows.route[one], 0) ? together : alone).push_back(one);
        const ps start = calendars_.first_fit(links_, holds_, arrivals_.at(src, chunk));
        calendars_.take(links_, holds_, start);
        for (auto one : together) {
            times.start[one] = start;
            times.end[one] = start + times_.of(chunk_bytes_[chunk], rows.route[one]).duration;
            arrivals_.note(rows.dst[one], chunk, times.end[one]);
        }
        for (auto one : alone)
            place(chunk, src, rows.dst[one], rows.route[one], times.start[one], times.end[one]);
    }

    // The same backwards for the parts of a sum that a switch adds: all end at once.
    void place_sum(const Transfers& rows, const std::vector<std::int32_t>& next, std::int32_t row,
                   Times& times) {
        const auto chunk = rows.chunk[row], dst = rows.dst[row];
        const auto duration = [&](std::int32_t one) {
            return times_.of(chunk_bytes_[chunk], rows.route[one]).duration;
        };
        ps longest = 0, earliest = 0;
        for (auto one = row; one >= 0; one = next[one]) longest = std::max(longest, duration(one));
        std::vector<std::int32_t> together, alone;
        links_.clear();
        holds_.clear();
        for (auto one = row; one >= 0; one = next[one]) {
            const ps later = longest - duration(one);
            const bool fits = joins(chunk, rows.route[one], later);
            (fits ? together : alone).push_back(one);
            if (fits) earliest = std::max(earliest, arrivals_.at(rows.src[one], chunk) - later);
        }
        const ps start = calendars_.first_fit(links_, holds_, earliest);
        calendars_.take(links_, holds_, start);
        for (auto one : together) {
            times.end[one] = start + longest;
            times.start[one] = times.end[one] - duration(one);
        }
        arrivals_.note(dst, chunk, start + longest);
        for (auto one : alone)
            place(chunk, rows.src[one], dst, rows.route[one], times.start[one], times.end[one]);
    }

  private:
    // Adds a route's links to those of a transmission, `later` than others; not if it would hold
    // one of them otherwise.
    bool joins(std::int32_t chunk, std::int32_t route, ps later) {
        const auto links = routes_[route];
        auto holds = times_.of(chunk_bytes_[chunk], route).holds;
        for (auto& hold : holds) hold.offset += later;
        const auto known = links_.size();
        for (std::size_t k = 0; k < links.size(); ++k) {
            const auto found = std::find(links_.begin(), links_.begin() + known, links[k]);
            if (found == links_.begin() + known) {
                links_.push_back(links[k]);
                holds_.push_back(holds[k]);
                continue;
            }
            if (holds_[found - links_.begin()] != holds[k]) {
                links_.resize(known);
                holds_.resize(known);
                return false;
            }
        }
        return true;
    }

    RowsView routes_;
    std::span<const std::int64_t> chunk_bytes_;
    TimesBySize times_;
    Arrivals arrivals_;
    Calendars calendars_;
    std::vector<std::int32_t> links_;  // of a transmission, and when it holds each
    std::vector<Hold> holds_;
};

Rows turned_round(RowsView given) {
    Rows routes{{given.offsets.begin(), given.offsets.end()},
                {given.items.begin(), given.items.end()}};
    for (std::int32_t route = 0; route < routes.size(); ++route)
        std::reverse(routes.items.begin() + routes.offsets[route],
                     routes.items.begin() + routes.offsets[route + 1]);
    return routes;
}

ps latest(const std::vector<ps>& times) {
    return times.empty() ? 0 : *std::max_element(times.begin(), times.end());
}

}  // namespace

Times retime(const Timing& timing, const Transfers& rows,
             std::span<const std::int64_t> chunk_bytes) {
    Placement placement(timing, rows, chunk_bytes);
    Times times{std::vector<ps>(rows.size()), std::vector<ps>(rows.size(), never)};
    const auto next = next_of_transmission(timing.network, timing.routes, rows);
    std::vector<std::int32_t> first(next.size());  // of the transmission of each row
    std::iota(first.begin(), first.end(), 0);
    for (std::size_t i = 0; i < next.size(); ++i)
        if (next[i] >= 0) first[next[i]] = first[i];
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (times.end[i] != never) continue;  // went with an earlier row
        const bool follows = !next.empty() && first[i] != static_cast<std::int32_t>(i);
        if (!next.empty() && rows.reduce[i] && (follows || next[i] >= 0)) {
            // Parts of a sum wait until what they all add is known: until the last of them.
            if (next[i] < 0) placement.place_sum(rows, next, first[i], times);
        } else if (!next.empty() && next[i] >= 0)
            placement.place_multicast(rows, next, static_cast<std::int32_t>(i), times);
        else
            placement.place(rows.chunk[i], rows.src[i], rows.dst[i], rows.route[i], times.start[i],
                            times.end[i]);
    }
    return times;
}

Times tighten(const Timing& timing, const Transfers& rows, std::int64_t bytes,
              std::vector<std::int32_t>& order) {
    Times times{{rows.start.begin(), rows.start.end()}, {rows.end.begin(), rows.end.end()}};
    if (!next_of_transmission(timing.network, timing.routes, rows).empty()) {
        order = order_by(times.start);
        return times;
    }
    const std::vector<std::int64_t> sizes(
        rows.size() == 0 ? 0 : *std::max_element(rows.chunk.begin(), rows.chunk.end()) + 1, bytes);
    const Network back_network = timing.network.reversed();
    const Rows back_routes = turned_round(timing.routes);
    auto by_latest_end = [](std::vector<ps> end) {
        const ps last = latest(end);
        for (auto& time : end) time = last - time;
        return order_by(end);
    };
    Times back = times, forth = times;
    Placement backwards({back_network, timing.cost, back_routes}, rows, sizes);
    for (auto i : by_latest_end(times.end))
        backwards.place(rows.chunk[i], rows.dst[i], rows.src[i], rows.route[i], back.start[i],
                        back.end[i]);
    Placement forwards(timing, rows, sizes);
    for (auto i : by_latest_end(back.end))
        forwards.place(rows.chunk[i], rows.src[i], rows.dst[i], rows.route[i], forth.start[i],
                       forth.end[i]);
    if (latest(forth.end) < latest(times.end)) times = std::move(forth);
    order = order_by(times.start);
    return times;
}

}  // namespace weft
