#include "direct.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "calendar.h"
#include "hops.h"
#include "radix.h"

namespace weft {
namespace {

// The links of each hop. Parallel links alike serve the hops that cross them in turn.
Rows links_of(const Hops& hops) {
    std::vector<std::int64_t> turn(hops.bundles.size(), 0);
    Rows links;
    for (std::int32_t hop = 0; hop < hops.count(); ++hop) {
        for (auto bundle : hops.steps[hop]) {
            const auto alike = hops.bundles[bundle];
            links.items.push_back(alike[turn[bundle]++ % static_cast<std::int64_t>(alike.size())]);
        }
        links.close();
    }
    return links;
}

// Where to go next from each NPU, for every taker and every set of NPUs that may relay.
class NextHops {
  public:
    static constexpr std::int32_t none = -1;

    NextHops(const Network& net, const Hops& hops, const Rows& links, const Rows& sets)
        : npus_(net.npus), hops_(hops), links_(links), sets_(sets), distance_(npus_),
          may_hold_(npus_) {}

    // The number of the table towards a taker; made when first asked for.
    std::int32_t towards(std::int32_t taker, std::int32_t reach) {
        const auto [found, is_new] =
            tables_.try_emplace({taker, reach}, static_cast<std::int32_t>(tables_.size()));
        if (is_new) walk_back(taker, reach);
        return found->second;
    }

    std::int32_t from(std::int32_t table, std::int32_t npu) const {
        return next_[place(table) + static_cast<std::size_t>(npu)];
    }

    // Which of the holders has the fewest hops to go, the lowest of equals; none if none has a way.
    std::int32_t nearest(std::span<const std::int32_t> holders, std::int32_t table) const {
        std::int32_t best = none, fewest = -1;
        for (auto npu : holders) {
            std::int32_t length = 0, at = npu;
            for (auto hop = from(table, at); hop != none; hop = from(table, at)) {
                at = hops_.dst[hop];
                ++length;
            }
            if (length > 0 && (best == none || length < fewest)) {
                best = npu;
                fewest = length;
            }
        }
        return best;
    }

  private:
    std::size_t place(std::int32_t table) const {
        return static_cast<std::size_t>(table) * static_cast<std::size_t>(npus_);
    }

    // Breadth first from the taker, against the direction of the hops.
    void walk_back(std::int32_t taker, std::int32_t reach) {
        allow(reach);
        std::fill(distance_.begin(), distance_.end(), -1);
        next_.resize(next_.size() + static_cast<std::size_t>(npus_), none);
        auto* next = next_.data() + next_.size() - npus_;
        std::vector<std::int32_t> queue{taker};
        distance_[taker] = 0;
        for (std::size_t i = 0; i < queue.size(); ++i)
            for (auto hop : hops_.in[queue[i]]) {
                const auto npu = hops_.src[hop];
                if (!may_hold_[npu]) continue;
                if (distance_[npu] < 0) {
                    distance_[npu] = distance_[queue[i]] + 1;
                    queue.push_back(npu);
                }
                if (distance_[npu] == distance_[queue[i]] + 1 && is_better(hop, next[npu]))
                    next[npu] = hop;
            }
    }

    void allow(std::int32_t reach) {
        std::fill(may_hold_.begin(), may_hold_.end(), reach < 0);
        if (reach >= 0)
            for (auto npu : sets_[reach]) may_hold_[npu] = true;
    }

    bool is_better(std::int32_t hop, std::int32_t than) const {
        return than == none ||
               std::pair(links_[hop][0], hop) < std::pair(links_[than][0], than);
    }

    std::int32_t npus_;
    const Hops& hops_;
    const Rows& links_;
    const Rows& sets_;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> tables_;
    std::vector<std::int32_t> next_;  // by table, then NPU
    std::vector<std::int32_t> distance_;
    std::vector<bool> may_hold_;
};

class Direct {
  public:
    Direct(const Network& net, CostModel cost, const Messages& messages)
        : net_(net), cost_(cost), messages_(messages), hops_(find_hops(net, cost, messages.bytes)),
          links_(links_of(hops_)), next_hops_(net, hops_, links_, messages.sets),
          calendars_(net.links()), route_of_(hops_.count(), -1), table_(messages.count()),
          at_(messages.count()) {}

    DirectRows run() && {
        for (std::int32_t m = 0; m < messages_.count(); ++m) {
            table_[m] = next_hops_.towards(messages_.taker[m], messages_.reach[m]);
            at_[m] = next_hops_.nearest(messages_.sets[messages_.holders[m]], table_[m]);
            if (at_[m] == NextHops::none) return {.lost = m};
        }
        for (std::int32_t m = 0; m < messages_.count(); ++m) book(m, 0);
        while (!arrivals_.empty()) {
            const auto [time, message] = arrivals_.top();
            arrivals_.pop();
            book(message, time);
        }
        sort_rows();
        return std::move(rows_);
    }

  private:
    // Books the next hop of a message that has arrived where it is.
    void book(std::int32_t message, ps ready) {
        const auto hop_number = next_hops_.from(table_[message], at_[message]);
        const auto links = links_[hop_number];
        speeds_.clear();
        for (auto link : links) speeds_.push_back(net_.speed[link]);
        holds_.resize(links.size());
        const ps duration = hop(cost_, messages_.bytes[message], speeds_, holds_);
        const ps start = calendars_.first_fit(links, holds_, ready);
        calendars_.take(links, holds_, start);
        rows_.message.push_back(message);
        rows_.src.push_back(at_[message]);
        rows_.dst.push_back(hops_.dst[hop_number]);
        rows_.route.push_back(route(hop_number));
        rows_.start.push_back(start);
        rows_.end.push_back(start + duration);
        at_[message] = hops_.dst[hop_number];
        if (at_[message] != messages_.taker[message]) arrivals_.push({start + duration, message});
    }

    std::int32_t route(std::int32_t hop_number) {
        if (hops_.single_links) return hop_number;
        auto& number = route_of_[hop_number];
        if (number < 0) {
            number = rows_.routes.size();
            const auto links = links_[hop_number];
            rows_.routes.items.insert(rows_.routes.items.end(), links.begin(), links.end());
            rows_.routes.close();
        }
        return number;
    }

    void sort_rows() {
        const auto order = order_by(rows_.start);
        const auto sort = [&]<class T>(std::vector<T>& column) {
            std::vector<T> sorted(column.size());
            for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
            column.swap(sorted);
        };
        for (auto* column : {&rows_.message, &rows_.src, &rows_.dst, &rows_.route}) sort(*column);
        for (auto* column : {&rows_.start, &rows_.end}) sort(*column);
    }

    using Arrival = std::pair<ps, std::int32_t>;  // when, which message

    const Network& net_;
    CostModel cost_;
    const Messages& messages_;
    Hops hops_;
    Rows links_;  // of each hop
    NextHops next_hops_;
    Calendars calendars_;
    std::vector<std::int32_t> route_of_;  // by hop; -1 until it is used
    std::vector<std::int32_t> table_;     // by message: the paths towards its taker
    std::vector<std::int32_t> at_;        // by message: the NPU it has come to
    std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
    std::vector<Speed> speeds_;
    std::vector<Hold> holds_;
    DirectRows rows_;
};

}  // namespace

DirectRows send_direct(const Network& network, CostModel cost, const Messages& messages) {
    return Direct(network, cost, messages).run();
}

}  // namespace weft
