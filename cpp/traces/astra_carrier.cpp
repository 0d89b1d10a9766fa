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

std::int32_t hops_between(std::int32_t src, std::int32_t dst, const AstraDimension& dimension) {
    switch (dimension.shape) {
        case AstraShape::fully_connected:
            return 1;
        case AstraShape::switched:
            return 2;
        default: {
            const std::int32_t clockwise = (dst - src + dimension.size) % dimension.size;
            return std::min(clockwise, dimension.size - clockwise);
        }
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
        : Carrier(graph, std::move(npus)), dimension_(dimension), after_(graph.size()) {}

    void release(std::uint32_t number, RunClock& clock) override {
        Link& link = links_[number];
        link.taken = false;
        if (link.head == no_node) return;
        const std::uint32_t next = link.head;
        link.head = after_[next];
        transmit(number, next, clock);
    }

    ps alone(std::uint32_t node) const override {
        const std::int32_t hops = hops_between(source(node), target(node), dimension_);
        return hops * whole(dimension_.latency + push(node));
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
    struct Link {
        std::int32_t src, dst;
        ps busy = 0;
        std::uint32_t head = no_node, tail = no_node;  // of the messages that wait
        bool taken = false;
    };

    double push(std::uint32_t node) const {
        return static_cast<double>(graph_.channel_of(node).bytes) / dimension_.bandwidth;
    }

    std::int32_t next_device(std::int32_t at, std::int32_t dst) const {
        const std::int32_t n = dimension_.size;
        switch (dimension_.shape) {
            case AstraShape::fully_connected:
                return dst;
            case AstraShape::switched:
                return at == n ? dst : n;
            default: {
                const std::int32_t clockwise = (dst - at + n) % n;
                return (at + (2 * clockwise <= n ? 1 : n - 1)) % n;
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

    // The message of a node leaves a device, or waits in line.
    void forward(std::uint32_t node, std::int32_t at, RunClock& clock) override {
        const std::uint32_t number = link_between(at, next_device(at, target(node)));
        Link& link = links_[number];
        if (!link.taken) return transmit(number, node, clock);
        (link.head == no_node ? link.head : after_[link.tail]) = node;
        link.tail = node;
        after_[node] = no_node;
    }

    void transmit(std::uint32_t number, std::uint32_t node, RunClock& clock) {
        Link& link = links_[number];
        const ps held = whole(push(node));
        check_later_than_zero(graph_, node, clock.now() + held);
        link.taken = true;
        link.busy += held;
        clock.schedule(whole(dimension_.latency + push(node)), Happening::message_arrives, node,
                       static_cast<std::uint32_t>(link.dst));
        clock.schedule(held, Happening::link_frees, number);
    }

    const AstraDimension dimension_;
    std::vector<Link> links_;  // those in use, in the order in which they were first used
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
    std::vector<std::uint32_t> after_;  // by node, if its message waits: the next in line
};

class Unaware : public Carrier {
  public:
    Unaware(const RunGraph& graph, std::vector<std::int32_t> npus,
            std::vector<AstraDimension> dimensions)
        : Carrier(graph, std::move(npus)), dimensions_(std::move(dimensions)) {
        for (const auto& dimension : dimensions_) {
            auto& row = latencies_.emplace_back();
            for (std::int32_t hops = 0; hops <= std::max(2, dimension.size / 2); ++hops)
                row.push_back(hops * dimension.latency);
        }
    }

    ps alone(std::uint32_t node) const override {
        std::int32_t src = source(node), dst = target(node);
        std::size_t first = 0;
        for (; src % dimensions_[first].size == dst % dimensions_[first].size; ++first) {
            src /= dimensions_[first].size;
            dst /= dimensions_[first].size;
        }
        const AstraDimension& dimension = dimensions_[first];
        const std::int32_t n = dimension.size;
        const std::int32_t hops = hops_between(src % n, dst % n, dimension);
        return whole(latencies_[first][hops] +
                     static_cast<double>(graph_.channel_of(node).bytes) / dimension.bandwidth);
    }

  private:
    void forward(std::uint32_t node, std::int32_t, RunClock& clock) override {
        const ps delay = alone(node);
        check_later_than_zero(graph_, node, clock.now() + delay);
        clock.schedule(delay, Happening::message_arrives, node,
                       static_cast<std::uint32_t>(target(node)));
    }

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
