#include "traces/network_carrier.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/calendar.h"
#include "engine/forwarding.h"

namespace weft {
namespace {

std::int64_t largest_message(const RunGraph& graph) {
    std::int64_t largest = 1;
    for (const auto& channel : graph.channels) largest = std::max(largest, channel.bytes);
    return largest;
}

class NetworkCarrier : public Carrier {
  public:
    NetworkCarrier(const RunGraph& graph, std::vector<std::int32_t> npus, const Network& network,
                   CostModel cost)
        : Carrier(graph, std::move(npus)), network_(network), cost_(cost),
          paths_(network, cost, largest_message(graph), no_sets_), table_(graph.ranks(), -1),
          calendars_(network.links()), busy_(network.links()) {
        for (const auto& channel : graph.channels) {
            auto& table = table_[channel.dst];
            if (table < 0) table = paths_.towards(npus_[channel.dst], -1);
            if (!paths_.settle_path(table, npus_[channel.src], npus_[channel.dst]))
                throw std::invalid_argument(
                    "rank " + std::to_string(channel.src) + " has a message for rank " +
                    std::to_string(channel.dst) + ", but NPU " +
                    std::to_string(npus_[channel.src]) + " cannot reach NPU " +
                    std::to_string(npus_[channel.dst]));
        }
        paths_.deal();
    }

    ps alone(std::uint32_t node) const override {
        const Channel& channel = graph_.channel_of(node);
        std::vector<Hold> holds;
        ps time = 0;
        for (auto at = source(node); at != target(node);) {
            const auto number = paths_.from(table_[channel.dst], at);
            time += time_hop(paths_.typical(number), channel.bytes, holds);
            at = paths_.end_of(number);
        }
        return time;
    }

    LinkUse use() const override { return {network_.src, network_.dst, busy_}; }

  private:
    ps time_hop(std::span<const std::int32_t> links, std::int64_t bytes,
                std::vector<Hold>& holds) const {
        speeds_.clear();
        for (auto link : links) speeds_.push_back(network_.speed[link]);
        holds.resize(links.size());
        return hop(cost_, bytes, speeds_, holds);
    }

    void forward(std::uint32_t node, std::int32_t at, RunClock& clock) override {
        const Channel& channel = graph_.channel_of(node);
        const auto number = paths_.from(table_[channel.dst], at);
        const auto links = paths_.take(number);
        const ps duration = time_hop(links, channel.bytes, holds_);
        const ps start = calendars_.first_fit(links, holds_, clock.now());
        clock.schedule(start - clock.now() + duration, Happening::message_arrives, node,
                       static_cast<std::uint32_t>(paths_.end_of(number)));
        calendars_.take(links, holds_, start);
        calendars_.forget(links, clock.now());
        for (std::size_t k = 0; k < links.size(); ++k) busy_[links[k]] += holds_[k].length;
    }

    const Network& network_;
    const CostModel cost_;
    const Rows no_sets_{};  // any NPU may relay
    Forwarding paths_;
    std::vector<std::int32_t> table_;  // of next hops, by the rank they lead to
    Calendars calendars_;
    std::vector<ps> busy_;  // by link
    std::vector<Hold> holds_;
    mutable std::vector<Speed> speeds_;  // reused
};

}  // namespace

std::unique_ptr<Carrier> network_carrier(const RunGraph& graph, std::vector<std::int32_t> npus,
                                         const Network& network, CostModel cost) {
    return std::make_unique<NetworkCarrier>(graph, std::move(npus), network, cost);
}

}  // namespace weft
