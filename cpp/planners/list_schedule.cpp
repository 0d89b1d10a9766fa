#include "planners/list_schedule.h"

#include <algorithm>
#include <queue>

#include "base/ports.h"
#include "planners/hop_events.h"

namespace weft {
namespace {

template <class Ports>
class ListScheduler {
  public:
    ListScheduler(const Hops& hops, std::span<const HopTimes> times, const Tasks& tasks,
                  const std::vector<ps>& priority, Progress& progress)
        : hops_(hops), times_(times), tasks_(tasks), priority_(priority), progress_(progress),
          ports_(hops), waits_for_(tasks.waits_for()), waiting_(hops.count()),
          is_ready_(hops.count(), false), events_(hops, times), queues_(hops.bundles.size()),
          is_queued_(hops.steps.items.size(), false) {}

    Schedule run() {
        for (std::int32_t task = 0; task < tasks_.size(); ++task)
            if (waits_for_[task] == 0) enqueue(task);
        const bool ended = events_.run(
            now_, progress_, [&](auto bundle) { on_release(bundle); },
            [&](auto task) { on_arrival(task); }, [&] { start_ready_hops(); });
        if (!ended) return {};
        schedule_.time = last_arrival_;
        schedule_.routes = ports_.take_routes();
        return std::move(schedule_);
    }

  private:
    struct Queued {
        std::int32_t hop;
        std::int64_t step;
    };

    void enqueue(std::int32_t task) {
        const auto hop = tasks_[task].hop;
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
        // Of hops over links that are taken none can start, whatever else does.
        std::erase_if(ready_, [&](auto hop) {
            const auto& times = times_[tasks_[-waiting_[hop].top().second].size];
            if (ports_.blocked_at(hop, now_, times) < 0) return false;
            is_ready_[hop] = false;
            return true;
        });
        if (!hops_.single_links)  // else no two hops compete
            std::sort(ready_.begin(), ready_.end(),
                      [&](auto a, auto b) { return waiting_[a].top() > waiting_[b].top(); });
        for (auto hop : ready_) {
            is_ready_[hop] = false;
            const auto task = -waiting_[hop].top().second;
            if (ports_.take(hop, now_, times_[tasks_[task].size])) start(hop, task);
        }
        ready_.clear();
    }

    void start(std::int32_t hop, std::int32_t task) {
        waiting_[hop].pop();
        schedule_.add(tasks_[task].chunk, hop, ports_.route(), now_);
        schedule_.reduce.push_back(tasks_[task].reduce);
        events_.start(now_, hop, tasks_[task].size, task, false);
    }

    void on_release(std::int32_t bundle) {
        std::erase_if(queues_[bundle], [&](const Queued& queued) {
            const bool done = waiting_[queued.hop].empty();
            if (done) is_queued_[queued.step] = false;
            if (!done) wake(queued.hop);
            return done;
        });
    }
    void on_arrival(std::int32_t task) {
        last_arrival_ = now_;
        ++progress_.done;
        tasks_.for_each_after(task, [&](std::int32_t later) {
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
    HopEvents events_;
    // By bundle: the hops over it for which tasks wait, since behind a switch thousands may share
    // one; a hop is taken out when it is next looked at.
    std::vector<std::vector<Queued>> queues_;
    std::vector<bool> is_queued_;  // by step
    ps now_ = 0, last_arrival_ = 0;
    Schedule schedule_;
};

}  // namespace

std::vector<ps> Tasks::heads(std::span<const HopTimes> times) const {
    std::vector<ps> head(size(), 0);
    for (std::int32_t task = 0; task < size(); ++task) {
        const ps arrival = head[task] + times[tasks_[task].size].duration[tasks_[task].hop];
        for_each_after(task,
                       [&](std::int32_t later) { head[later] = std::max(head[later], arrival); });
    }
    return head;
}

std::vector<ps> Tasks::tails(std::span<const HopTimes> times) const {
    std::vector<ps> tail(size(), 0);
    for (std::int32_t task = size() - 1; task >= 0; --task) {
        for_each_after(task,
                       [&](std::int32_t later) { tail[task] = std::max(tail[task], tail[later]); });
        tail[task] += times[tasks_[task].size].duration[tasks_[task].hop];
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
