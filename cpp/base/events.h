// The event queue: what happens next, in order of time, ties in order of insertion.
#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

#include "base/cost.h"

namespace weft {

struct Event {
    ps time;
    std::uint32_t subject;
    std::uint32_t detail;
};

// Event::detail of an event that frees a bundle of links, where others tell of an arrival.
inline constexpr std::uint32_t release = ~std::uint32_t{0};

// Events are pushed a fixed delay ahead of a clock that never runs backwards. So events of one
// delay come out in the order they went in: one FIFO a delay is enough, and a heap is needed
// only when there are many different delays.
class EventQueue {
  public:
    // `delays`: every delay that will be used, repeats welcome.
    explicit EventQueue(std::vector<ps> delays) : delays_(std::move(delays)) {
        std::sort(delays_.begin(), delays_.end());
        delays_.erase(std::unique(delays_.begin(), delays_.end()), delays_.end());
        if (delays_.size() <= max_fifos) fifos_.resize(delays_.size());
    }

    // Number of a delay, to be kept and given to `push`.
    std::uint32_t lane(ps delay) const {
        return static_cast<std::uint32_t>(std::lower_bound(delays_.begin(), delays_.end(), delay) -
                                          delays_.begin());
    }

    void push(ps now, std::uint32_t lane, std::uint32_t subject, std::uint32_t detail) {
        const Event event{now + delays_[lane], subject, detail};
        ++size_;
        if (fifos_.empty())
            heap_.push({event, sequence_++});
        else
            fifos_[lane].push(event);
    }

    bool empty() const { return size_ == 0; }

    ps next_time() const {
        if (fifos_.empty()) return heap_.top().event.time;
        ps time = never;
        for (const auto& fifo : fifos_)
            if (!fifo.empty()) time = std::min(time, fifo.front().time);
        return time;
    }

    // Takes out every event of `time`, in order, and hands each to `handle`.
    template <class Handle>
    void pop_all(ps time, Handle handle) {
        if (fifos_.empty()) {
            while (!heap_.empty() && heap_.top().event.time == time) {
                const Event event = heap_.top().event;
                heap_.pop();
                --size_;
                handle(event);
            }
            return;
        }
        for (auto& fifo : fifos_)
            while (!fifo.empty() && fifo.front().time == time) {
                const Event event = fifo.front();
                fifo.pop();
                --size_;
                handle(event);
            }
    }

  private:
    static constexpr std::size_t max_fifos = 24;

    // A ring that grows: std::deque allocates and frees as it slides.
    class Fifo {
      public:
        bool empty() const { return count_ == 0; }
        const Event& front() const { return ring_[head_]; }
        void push(const Event& event) {
            if (count_ == ring_.size()) grow();
            ring_[(head_ + count_++) & (ring_.size() - 1)] = event;
        }
        void pop() {
            head_ = (head_ + 1) & (ring_.size() - 1);
            --count_;
        }

      private:
        void grow() {
            std::vector<Event> larger(std::max<std::size_t>(64, ring_.size() * 2));
            for (std::size_t i = 0; i < count_; ++i)
                larger[i] = ring_[(head_ + i) & (ring_.size() - 1)];
            ring_.swap(larger);
            head_ = 0;
        }
        std::vector<Event> ring_;
        std::size_t head_ = 0, count_ = 0;
    };

    struct Queued {
        Event event;
        std::uint64_t sequence;
        bool operator<(const Queued& other) const {  // std::priority_queue takes the largest
            return event.time != other.event.time ? event.time > other.event.time
                                                  : sequence > other.sequence;
        }
    };

    std::vector<ps> delays_;
    std::vector<Fifo> fifos_;
    std::priority_queue<Queued> heap_;
    std::uint64_t sequence_ = 0;
    std::size_t size_ = 0;
};

}  // namespace weft
