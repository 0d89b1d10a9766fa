#include "planners/list_schedule.h"

#include <algorithm>
#include <queue>

#include "base/events.h"
#include "base/ports.h"

namespace weft {
namespace {

template <class Ports>
class ListScheduler {
  public:
    ListScheduler(const Hops& hops, std::span<const HopTimes> times, const Tasks& tasks,
                  const std::vector<ps>& priority, Progress& progress)
        : hops_(hops), times_(times), tasks_(tasks), priority_(priority), progress_(progress),
          ports_(hops, times[0]), waits_for_(tasks.waits_for()), waiting_(hops.count()),
          is_ready_(hops.count(), false), events_(all_delays()), queues_(hops.bundles.size()),
          is_queued_(hops.steps.items.size(), false) {
        for (const auto& of_size : times) {
            lanes_.emplace_back();
            for (auto duration : of_size.duration)
                lanes_.back().arrival.push_back(events_.lane(duration));
            for (const auto& hold : of_size.holds) {
                lanes_.back().held.push_back(events_.lane(hold.length));
                lanes_.back().freed.push_back(events_.lane(hold.offset + hold.length));
            }
        }
    }

    Schedule run() {
        for (std::int32_t task = 0; task < tasks_.size(); ++task)
            if (waits_for_[task] == 0) enqueue(task);
        start_ready_hops();
        while (!events_.empty()) {
            if (progress_.cancelled) return {};
            now_ = events_.next_time();
            events_.pop_all(now_, [&](const Event& event) {
                event.detail == release ? on_release(event.subject) : on_arrival(event.subject);
            });
            start_ready_hops();
        }
        schedule_.time = last_arrival_;
        schedule_.routes = ports_.take_routes();
        return std::move(schedule_);
    }

  private:
    // Of the event queue, for chunks of one size.
    struct Lanes {
        std::vector<std::uint32_t> arrival;      // by hop
        std::vector<std::uint32_t> held, freed;  // by step
    };

    struct Queued {
        std::int32_t hop;
        std::int64_t step;
    };

    std::vector<ps> all_delays() const {
        std::vector<ps> delays;
        for (const auto& times : times_) {
            delays.insert(delays.end(), times.duration.begin(), times.duration.end());
            for (const auto& hold : times.holds) delays.push_back(hold.offset + hold.length);
            for (const auto& hold : times.holds) delays.push_back(hold.length);
        }
        return delays;
    }

    void enqueue(std::int32_t task) {
        const auto hop = tasks_.hop(task);
        waiting_[hop].push({priority_[task], -task});
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i)
            if (!is_queued_[i]) {
                is_queued_[i] = true;
                queues_[hops_.steps.items[i]].push_back({hop, i});
            }
        wake(hop);
    }
    void wake(std::int32_t hop) {
        if (is_ready_[hop]) return;
        is_ready_[hop] = true;
        ready_.push_back(hop);
    }

    void start_ready_hops() {
        if (!hops_.single_links)  // else no two hops compete
            std::sort(ready_.begin(), ready_.end(),
                      [&](auto a, auto b) { return waiting_[a].top() > waiting_[b].top(); });
        for (auto hop : ready_) {
            is_ready_[hop] = false;
            const auto task = -waiting_[hop].top().second;
            if (ports_.take(hop, now_, times_[tasks_.size_of(task)])) start(hop, task);
        }
        ready_.clear();
    }

    void start(std::int32_t hop, std::int32_t task) {
        const auto& lanes = lanes_[tasks_.size_of(task)];
        waiting_[hop].pop();
        schedule_.chunk.push_back(tasks_.chunk(task));
        schedule_.hop.push_back(hop);
        if (!hops_.single_links) schedule_.route.push_back(ports_.route(hop));
        schedule_.reduce.push_back(tasks_.reduce(task));
        schedule_.start.push_back(now_);
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i) {
            // A later hop may need the link only some time after its own start: look twice.
            const auto bundle = static_cast<std::uint32_t>(hops_.steps.items[i]);
            events_.push(now_, lanes.held[i], bundle, release);
            if (lanes.freed[i] != lanes.held[i])
                events_.push(now_, lanes.freed[i], bundle, release);
        }
        events_.push(now_, lanes.arrival[hop], static_cast<std::uint32_t>(task), 0);
    }

    void on_release(std::uint32_t bundle) {
        std::erase_if(queues_[bundle], [&](const Queued& queued) {
            const bool done = waiting_[queued.hop].empty();
            if (done) is_queued_[queued.step] = false;
            if (!done) wake(queued.hop);
            return done;
        });
    }
    void on_arrival(std::uint32_t task) {
        last_arrival_ = now_;
        ++progress_.done;
        tasks_.for_each_after(static_cast<std::int32_t>(task), [&](std::int32_t later) {
            if (--waits_for_[later] == 0) enqueue(later);
        });
    }

    const Hops& hops_;
    std::span<const HopTimes> times_;
    const Tasks& tasks_;
    const std::vector<ps>& priority_;
    Progress& progress_;
    Ports ports_;
    std::vector<std::int32_t> waits_for_;
    // By hop: (priority, minus the task's number), the highest first.
    std::vector<std::priority_queue<std::pair<ps, std::int32_t>>> waiting_;
    std::vector<bool> is_ready_;
    std::vector<std::int32_t> ready_;
    EventQueue events_;
    std::vector<Lanes> lanes_;  // by size
    // By bundle: the hops over it for which tasks wait, since behind a switch thousands may share
    // one; a hop is taken out when it is next looked at.
    std::vector<std::vector<Queued>> queues_;
    std::vector<bool> is_queued_;  // by step
    ps now_ = 0, last_arrival_ = 0;
    Schedule schedule_;
};

}  // namespace

std::vector<ps> Tasks::heads(std::span<const HopTimes> times) const {
    std::vector<ps> head(hop_.size(), 0);
    for (std::int32_t task = 0; task < size(); ++task) {
        const ps arrival = head[task] + times[size_[task]].duration[hop_[task]];
        for_each_after(task,
                       [&](std::int32_t later) { head[later] = std::max(head[later], arrival); });
    }
    return head;
}

std::vector<ps> Tasks::tails(std::span<const HopTimes> times) const {
    std::vector<ps> tail(hop_.size(), 0);
    for (std::int32_t task = size() - 1; task >= 0; --task) {
        for_each_after(task,
                       [&](std::int32_t later) { tail[task] = std::max(tail[task], tail[later]); });
        tail[task] += times[size_[task]].duration[hop_[task]];
    }
    return tail;
}

Schedule list_schedule(const Hops& hops, std::span<const HopTimes> times, const Tasks& tasks,
                       const std::vector<ps>& priority, Progress& progress) {
    return hops.single_links
               ? ListScheduler<LinkPorts>(hops, times, tasks, priority, progress).run()
               : ListScheduler<RoutedPorts>(hops, times, tasks, priority, progress).run();
}

}  // namespace weft
