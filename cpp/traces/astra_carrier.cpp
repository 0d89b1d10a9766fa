#include "traces/astra_carrier.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace weft {
namespace {

// As ASTRA-sim rounds; what no clock can count stays beyond its end.
ps whole(double nanoseconds) {
    constexpr double most = 4e18;
    return static_cast<ps>(std::floor(std::min(nanoseconds, most)));
}

std::int32_t ring_hops(std::int32_t src, std::int32_t dst, std::int32_t size) {
    const std::int32_t clockwise = (dst - src + size) % size;
    return std::min(clockwise, size - clockwise);
}

std::int32_t hops_between(std::int32_t src, std::int32_t dst, const AstraDimension& dimension) {
    switch (dimension.shape) {
        case AstraShape::fully_connected:
            return 1;
        case AstraShape::switched:
            return 2;
        default:
            return ring_hops(src, dst, dimension.size);
    }
}

// Events of ASTRA-sim cannot be at time 0.
void check_later_than_zero(const RunGraph& graph, std::uint32_t node, ps time) {
    if (time > 0) return;
    throw std::invalid_argument(graph.name_of(node) + " sends " +
                                std::to_string(graph.channel_of(node).bytes) +
                                " B at time 0, which takes less than 1 ns; ASTRA-sim aborts");
}

class Aware : public Carrier {
  public:
    Aware(const RunGraph& graph, std::vector<std::int32_t> npus, const AstraDimension& dimension)
        : graph_(graph), npus_(std::move(npus)), dimension_(dimension) {}

    void send(std::uint32_t node, RunClock& clock) override {
        forward({node, npus_[graph_.channel_of(node).src]}, clock);
    }

    bool arrive(const RunEvent& event, RunClock& clock) override {
        const auto at = static_cast<std::int32_t>(event.place);
        if (at == npus_[graph_.channel_of(event.subject).dst]) return true;
        forward({event.subject, at}, clock);
        return false;
    }

    void release(std::uint32_t number, RunClock& clock) override {
        Link& link = links_[number];
        link.taken = false;
        if (link.head == no_node) return;
        const Waiting next = waiting_[link.head];
        spare_.push_back(std::exchange(link.head, next.after));
        transmit(number, next.message, clock);
    }

    ps alone(std::uint32_t node) const override {
        const Channel& channel = graph_.channel_of(node);
        const std::int32_t hops = hops_between(npus_[channel.src], npus_[channel.dst], dimension_);
        return hops * whole(dimension_.latency + push(channel));
    }

    LinkUse use() const override {
        std::vector<Link> sorted = links_;
        std::sort(sorted.begin(), sorted.end(), [](const Link& a, const Link& b) {
            return std::pair(a.src, a.dst) < std::pair(b.src, b.dst);
        });
        LinkUse use;
        for (const Link& link : sorted) {
            use.src.push_back(link.src);
            use.dst.push_back(link.dst);
            use.busy.push_back(link.busy);
        }
        return use;
    }

  private:
    struct Message {
        std::uint32_t node;
        std::int32_t at;  // the device it has come to
    };
    struct Waiting {
        Message message;
        std::uint32_t after;  // the next in line
    };
    struct Link {
        std::int32_t src, dst;
        ps busy = 0;
        std::uint32_t head = no_node, tail = no_node;  // of those that wait
        bool taken = false;
    };

    double push(const Channel& channel) const {
        return static_cast<double>(channel.bytes) / dimension_.bandwidth;
    }

    std::int32_t next_device(const Message& message) const {
        const std::int32_t n = dimension_.size, dst = npus_[graph_.channel_of(message.node).dst];
        switch (dimension_.shape) {
            case AstraShape::fully_connected:
                return dst;
            case AstraShape::switched:
                return message.at == n ? dst : n;
            default: {
                const std::int32_t clockwise = (dst - message.at + n) % n;
                return (message.at + (2 * clockwise <= n ? 1 : n - 1)) % n;
            }
        }
    }

    std::uint32_t link_between(std::int32_t src, std::int32_t dst) {
        const auto key = static_cast<std::uint64_t>(src) << 32 | static_cast<std::uint32_t>(dst);
        const auto [found, is_new] =
            numbers_.try_emplace(key, static_cast<std::uint32_t>(links_.size()));
        if (is_new) links_.push_back({src, dst});
        return found->second;
    }

    void forward(const Message& message, RunClock& clock) {
        const std::uint32_t number = link_between(message.at, next_device(message));
        if (links_[number].taken)
            stand_in_line(links_[number], message);
        else
            transmit(number, message, clock);
    }

    void stand_in_line(Link& link, const Message& message) {
        std::uint32_t spot = static_cast<std::uint32_t>(waiting_.size());
        if (spare_.empty()) {
            waiting_.emplace_back();
        } else {
            spot = spare_.back();
            spare_.pop_back();
        }
        waiting_[spot] = {message, no_node};
        (link.head == no_node ? link.head : waiting_[link.tail].after) = spot;
        link.tail = spot;
    }

    void transmit(std::uint32_t number, const Message& message, RunClock& clock) {
        Link& link = links_[number];
        const Channel& channel = graph_.channel_of(message.node);
        const ps held = whole(push(channel));
        check_later_than_zero(graph_, message.node, clock.now() + held);
        link.taken = true;
        link.busy += held;
        clock.schedule(whole(dimension_.latency + push(channel)), Happening::message_arrives,
                       message.node, static_cast<std::uint32_t>(link.dst));
        clock.schedule(held, Happening::link_frees, number);
    }

    const RunGraph& graph_;
    const std::vector<std::int32_t> npus_;
    const AstraDimension dimension_;
    std::vector<Link> links_;  // those in use, in the order in which they were first used
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
    std::vector<Waiting> waiting_;
    std::vector<std::uint32_t> spare_;  // places in `waiting_`
};

class Unaware : public Carrier {
  public:
    Unaware(const RunGraph& graph, std::vector<std::int32_t> npus,
            std::vector<AstraDimension> dimensions)
        : graph_(graph), npus_(std::move(npus)), dimensions_(std::move(dimensions)) {
        for (const auto& dimension : dimensions_) {
            auto& row = latencies_.emplace_back();
            for (std::int32_t hops = 0; hops <= std::max(2, dimension.size / 2); ++hops)
                row.push_back(hops * dimension.latency);
        }
    }

    void send(std::uint32_t node, RunClock& clock) override {
        const ps delay = alone(node);
        check_later_than_zero(graph_, node, clock.now() + delay);
        clock.schedule(delay, Happening::message_arrives, node);
    }
    bool arrive(const RunEvent&, RunClock&) override { return true; }
    void release(std::uint32_t, RunClock&) override {}

    ps alone(std::uint32_t node) const override {
        const Channel& channel = graph_.channel_of(node);
        std::int32_t src = npus_[channel.src], dst = npus_[channel.dst];
        std::size_t first = 0;
        for (; src % dimensions_[first].size == dst % dimensions_[first].size; ++first) {
            src /= dimensions_[first].size;
            dst /= dimensions_[first].size;
        }
        const AstraDimension& dimension = dimensions_[first];
        const std::int32_t n = dimension.size;
        const std::int32_t hops = hops_between(src % n, dst % n, dimension);
        return whole(latencies_[first][hops] +
                     static_cast<double>(channel.bytes) / dimension.bandwidth);
    }

    LinkUse use() const override { return {}; }

  private:
    const RunGraph& graph_;
    const std::vector<std::int32_t> npus_;
    const std::vector<AstraDimension> dimensions_;
    // Of so many hops; ready made, since a product and a sum in one step would be rounded once.
    std::vector<std::vector<double>> latencies_;
};

}  // namespace

std::unique_ptr<Carrier> astra_aware(const RunGraph& graph, std::vector<std::int32_t> npus,
                                     const AstraDimension& dimension) {
    return std::make_unique<Aware>(graph, std::move(npus), dimension);
}

std::unique_ptr<Carrier> astra_unaware(const RunGraph& graph, std::vector<std::int32_t> npus,
                                       std::vector<AstraDimension> dimensions) {
    return std::make_unique<Unaware>(graph, std::move(npus), std::move(dimensions));
}

}  // namespace weft
