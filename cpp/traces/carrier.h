// What moves the messages of a run of traces: a network with its own idea of time.
#pragma once

#include <cstdint>
#include <queue>
#include <stdexcept>
#include <vector>

#include "base/cost.h"

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

class Carrier {
  public:
    virtual ~Carrier() = default;

    // The message of a COMM_SEND sets out now.
    virtual void send(std::uint32_t node, RunClock& clock) = 0;
    // A message has come to `event.place`; true if that is where it goes.
    virtual bool arrive(const RunEvent& event, RunClock& clock) = 0;
    // A link is free again.
    virtual void release(std::uint32_t link, RunClock& clock) = 0;
    // What the message of a COMM_SEND would take if it were alone.
    virtual ps alone(std::uint32_t node) const = 0;
    virtual LinkUse use() const = 0;
};

}  // namespace weft
