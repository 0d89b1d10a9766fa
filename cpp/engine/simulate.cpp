#include "engine/simulate.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "base/calendar.h"
#include "base/grouping.h"
#include "base/route_times.h"

namespace weft {
namespace {

class FirstCome {
  public:
    explicit FirstCome(const Run& run)
        : run_(run), times_(run.network, run.routes, run.cost), calendars_(run.network.links()),
          left_(run.waits.size()), ready_(run.waits.size(), 0),
          adder_(run.reducer > 0 ? run.network.npus : 0, 0),
          done_{std::vector<ps>(run.rows.size()), std::vector<ps>(run.rows.size()),
                std::vector<ps>(run.network.links(), 0)} {}

    Simulated simulate() && {
        waiters_ = grouped<std::int32_t>(left_.size(), [&](const auto& add) {
            for (std::int32_t node = 0; node < run_.waits.size(); ++node)
                for (auto wait : run_.waits.waits[node]) add(wait, node);
        });
        for (std::int32_t node = 0; node < run_.waits.size(); ++node) {
            left_[node] = static_cast<std::int32_t>(run_.waits.waits[node].size());
            if (left_[node] == 0) events_.push({0, 2 * std::int64_t{node}});
        }
        while (!events_.empty()) {
            const auto [time, event] = events_.top();
            events_.pop();
            const auto node = static_cast<std::int32_t>(event / 2);
            if (event % 2 == 1)
                add(node, time);
            else
                book(node, time);
        }
        return std::move(done_);
    }

  private:
    // Gives a row that has nothing left to wait for the first time at which its links are free.
    void book(std::int32_t row, ps now) {
        const auto& [duration, holds] =
            times_.of(run_.bytes[run_.rows.chunk[row]], run_.rows.route[row]);
        const auto links = run_.routes[run_.rows.route[row]];
        const ps start = calendars_.first_fit(links, holds, now);
        calendars_.take(links, holds, start);
        for (std::size_t k = 0; k < links.size(); ++k) done_.busy[links[k]] += holds[k].length;
        done_.start[row] = start;
        if (run_.adding(row) > 0)
            events_.push({start + duration, 2 * std::int64_t{row} + 1});
        else
            finish(row, start + duration);
    }

    void add(std::int32_t row, ps arrived) {
        ps& free = adder_[run_.rows.dst[row]];
        free = std::max(free, arrived) + run_.adding(row);
        finish(row, free);
    }

    // Joins are no events: rows behind one must not ask after others of the same time.
    void finish(std::int32_t row, ps end) {
        done_.end[row] = ready_[row] = end;
        finished_.assign(1, row);
        while (!finished_.empty()) {
            const auto node = finished_.back();
            finished_.pop_back();
            for (auto waiter : waiters_[node]) {
                ready_[waiter] = std::max(ready_[waiter], ready_[node]);
                if (--left_[waiter] > 0) continue;
                if (waiter >= run_.waits.rows)
                    finished_.push_back(waiter);
                else
                    events_.push({ready_[waiter], 2 * std::int64_t{waiter}});
            }
        }
    }

    // When, and what: twice the node, and one more where a part has arrived to be added.
    using Event = std::pair<ps, std::int64_t>;

    const Run& run_;
    TimesBySize times_;
    Calendars calendars_;
    Grouped<std::int32_t> waiters_;   // of each node: those that wait for it
    std::vector<std::int32_t> left_;  // by node: how many it still waits for
    std::vector<ps> ready_;  // by node: when the last of those that are done ended, or it did
    std::vector<std::int32_t> finished_;  // nodes whose waiters do not know yet
    std::vector<ps> adder_;               // by NPU: when it is free to add
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    Simulated done_;
};

}  // namespace

Simulated run_first_come(const Run& run) { return FirstCome(run).simulate(); }

Simulated run_in_order(const Run& run, std::span<const ps> earliest) {
    TimesBySize times(run.network, run.routes, run.cost);
    Calendars calendars(run.network.links());
    Simulated done{std::vector<ps>(run.rows.size()), std::vector<ps>(run.rows.size()),
                   std::vector<ps>(run.network.links(), 0)};
    std::vector<ps> joined(run.waits.size() - run.waits.rows, -1);
    const auto ended = [&](const auto& self, std::int32_t node) -> ps {
        if (node < run.waits.rows) return done.end[node];
        ps& latest = joined[node - run.waits.rows];
        if (latest < 0) {  // all it stands for come before the first row that asks
            latest = 0;
            for (auto wait : run.waits.waits[node]) latest = std::max(latest, self(self, wait));
        }
        return latest;
    };
    for (std::int32_t row = 0; row < run.waits.rows; ++row) {
        ps ready = earliest[row];
        for (auto wait : run.waits.waits[row]) ready = std::max(ready, ended(ended, wait));
        const auto& [duration, holds] =
            times.of(run.bytes[run.rows.chunk[row]], run.rows.route[row]);
        const auto links = run.routes[run.rows.route[row]];
        done.start[row] = calendars.first_fit(links, holds, ready);
        done.end[row] = done.start[row] + duration;
        calendars.take(links, holds, done.start[row]);
        for (std::size_t k = 0; k < links.size(); ++k) done.busy[links[k]] += holds[k].length;
    }
    return done;
}

Occupied occupied(const Run& run, std::span<const ps> start) {
    TimesBySize times(run.network, run.routes, run.cost);
    Occupied all;
    all.duration.reserve(start.size());
    for (std::size_t row = 0; row < start.size(); ++row) {
        const auto& [duration, holds] =
            times.of(run.bytes[run.rows.chunk[row]], run.rows.route[row]);
        all.duration.push_back(duration);
        for (const auto& hold : holds) {
            all.begin.push_back(start[row] + hold.offset);
            all.length.push_back(hold.length);
        }
    }
    return all;
}

}  // namespace weft
