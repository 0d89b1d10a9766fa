// What moves the messages of a run of traces: a network with its own idea of time.
#pragma once

#include <cstdint>
#include <queue>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/cost.h"
#include "traces/run_graph.h"

namespace weft {

enum class Happening : std::uint8_t { comp_ends, recv_ends, message_arrives, link_frees };

struct RunEvent {
    ps time;
    std::uint64_t order;    // when it was scheduled, and in the lowest bits its Happening
    std::uint32_t subject;  // a node, or a link
    std::uint32_t place;    // where a message has come to

    Happening happening() const { return static_cast<Happening>(order & 3); }
};

// The time of a run, in steps of the carrier's own, and what is still to come: events of one
// instant in the order in which they were scheduled.
class RunClock {
  public:
    explicit RunClock(ps end) : end_(end) {}

    ps now() const { return now_; }
    bool done() const { return events_.empty(); }

    void schedule(ps delay, Happening what, std::uint32_t subject, std::uint32_t place = 0) {
        if (delay > end_ - now_)
            throw std::invalid_argument("the run goes on for longer than the clock does (53 days)");
        events_.push(
            {now_ + delay, scheduled_++ << 2 | static_cast<std::uint64_t>(what), subject, place});
    }

    RunEvent next() {
        const RunEvent event = events_.top();
        events_.pop();
        now_ = event.time;
        return event;
    }

  private:
    struct Later {
        bool operator()(const RunEvent& a, const RunEvent& b) const {
            return a.time != b.time ? a.time > b.time : a.order > b.order;
        }
    };

    ps now_ = 0, end_;
    std::uint64_t scheduled_ = 0;
    std::priority_queue<RunEvent, std::vector<RunEvent>, Later> events_;
};

// Links that were used, and for how long.
struct LinkUse {
    std::vector<std::int32_t> src, dst;
    std::vector<ps> busy;
};

// Rank r of the traces is NPU npus[r].
class Carrier {
  public:
    Carrier(const RunGraph& graph, std::vector<std::int32_t> npus)
        : graph_(graph), npus_(std::move(npus)) {}
    virtual ~Carrier() = default;

    // The message of a COMM_SEND sets out now.
    void send(std::uint32_t node, RunClock& clock) { forward(node, source(node), clock); }
    // A message has come to `event.place`; true if that is where it goes.
    bool arrive(const RunEvent& event, RunClock& clock) {
        const auto at = static_cast<std::int32_t>(event.place);
        if (at == target(event.subject)) return true;
        forward(event.subject, at, clock);
        return false;
    }
    // A link is free again.
    virtual void release(std::uint32_t /* link */, RunClock&) {}
    // What the message of a COMM_SEND would take if it were alone.
    virtual ps alone(std::uint32_t node) const = 0;
    virtual LinkUse use() const { return {}; }

  protected:
    // The message of a COMM_SEND goes on from a device: schedules when it comes to the next.
    virtual void forward(std::uint32_t node, std::int32_t at, RunClock& clock) = 0;

    std::int32_t source(std::uint32_t node) const { return npus_[graph_.channel_of(node).src]; }
    std::int32_t target(std::uint32_t node) const { return npus_[graph_.channel_of(node).dst]; }

    const RunGraph& graph_;
    const std::vector<std::int32_t> npus_;
};

}  // namespace weft
