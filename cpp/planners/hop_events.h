// What happens to hops that have started: when their links are free again, and when chunks arrive.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/events.h"
#include "base/hops.h"
#include "base/progress.h"

namespace weft {

class HopEvents {
  public:
    // `times`: for each size of chunks.
    HopEvents(const Hops& hops, std::span<const HopTimes> times)
        : hops_(hops), queue_(all_delays(times)) {
        for (const auto& of_size : times) {
            auto& lanes = lanes_.emplace_back();
            for (auto duration : of_size.duration) lanes.arrival.push_back(queue_.lane(duration));
            for (const auto& hold : of_size.holds) {
                lanes.held.push_back(queue_.lane(hold.length));
                lanes.freed.push_back(queue_.lane(hold.offset + hold.length));
            }
        }
    }

    // A chunk of a size starts over a hop; `subject` is what arrives. With `arrival_frees` links
    // that are free by then are not told of besides.
    void start(ps now, std::int32_t hop, std::int32_t size, std::int32_t subject,
               bool arrival_frees) {
        const auto& lanes = lanes_[size];
        const auto arrival = lanes.arrival[hop];
        for (auto i = hops_.steps.offsets[hop]; i < hops_.steps.offsets[hop + 1]; ++i) {
            // A later hop may need the link only some time after its own start: look twice.
            const auto bundle = static_cast<std::uint32_t>(hops_.steps.items[i]);
            const auto held = lanes.held[i], freed = lanes.freed[i];
            if (!arrival_frees || held != arrival) queue_.push(now, held, bundle, release);
            if (freed != held) queue_.push(now, freed, bundle, release);
        }
        queue_.push(now, arrival, static_cast<std::uint32_t>(subject), 0);
    }

    // From event to event until there are no more: hands out bundles that are free and what has
    // arrived, then lets hops start, as it does at first. False if cancelled.
    template <class OnRelease, class OnArrival, class StartHops>
    bool run(ps& now, const Progress& progress, OnRelease on_release, OnArrival on_arrival,
             StartHops start_hops) {
        start_hops();
        while (!queue_.empty()) {
            if (progress.cancelled) return false;
            now = queue_.next_time();
            queue_.pop_all(now, [&](const Event& event) {
                const auto subject = static_cast<std::int32_t>(event.subject);
                event.detail == release ? on_release(subject) : on_arrival(subject);
            });
            start_hops();
        }
        return true;
    }

  private:
    struct Lanes {
        std::vector<std::uint32_t> arrival;      // by hop
        std::vector<std::uint32_t> held, freed;  // by step
    };

    static std::vector<ps> all_delays(std::span<const HopTimes> times) {
        std::vector<ps> delays;
        for (const auto& of_size : times) {
            delays.insert(delays.end(), of_size.duration.begin(), of_size.duration.end());
            for (const auto& hold : of_size.holds)
                delays.insert(delays.end(), {hold.length, hold.offset + hold.length});
        }
        return delays;
    }

    const Hops& hops_;
    EventQueue queue_;
    std::vector<Lanes> lanes_;  // by size
};

}  // namespace weft
