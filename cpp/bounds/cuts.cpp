#include "bounds/cuts.h"

#include <algorithm>

namespace weft {
namespace {

// Dinic's maximum flow, from a super source that feeds each node its supply.
class Flow {
  public:
    Flow(const Network& net, std::span<const double> supply)
        : net_(net), supply_(supply), source_(net.nodes()), edges_from_(net.nodes() + 1) {
        for (std::int32_t link = 0; link < net.links(); ++link) add(net.src[link], net.dst[link]);
        for (std::int32_t node = 0; node < net.nodes(); ++node)
            if (supply[node] > 0) add(source_, node);
    }

    // Bytes that reach `sink` in `seconds`, of all the supply.
    double run(std::int32_t sink, double seconds, std::int64_t& budget) {
        fill(seconds);
        double total = 0;
        while (level(sink)) {
            budget -= static_cast<std::int64_t>(to_.size());
            next_.assign(edges_from_.size(), 0);
            while (const double pushed = push(sink)) total += pushed;
        }
        return total;
    }

    // After `run`: the nodes the source still reaches, a smallest cut.
    std::vector<bool> source_side() const {
        std::vector<bool> inside(net_.nodes());
        for (std::int32_t node = 0; node < net_.nodes(); ++node) inside[node] = level_[node] >= 0;
        return inside;
    }

  private:
    void add(std::int32_t from, std::int32_t to) {
        edges_from_[from].push_back(static_cast<std::int32_t>(to_.size()));
        to_.push_back(to);
        edges_from_[to].push_back(static_cast<std::int32_t>(to_.size()));
        to_.push_back(from);
    }

    void fill(double seconds) {
        left_.assign(to_.size(), 0);
        std::size_t edge = 0;
        for (std::int32_t link = 0; link < net_.links(); ++link, edge += 2)
            left_[edge] = static_cast<double>(net_.speed[link].bandwidth) * seconds;
        for (std::int32_t node = 0; node < net_.nodes(); ++node)
            if (supply_[node] > 0) left_[edge] = supply_[node], edge += 2;
        // What is left of a full link by rounding must not count as room.
        smallest_ = 1e-9 * *std::max_element(left_.begin(), left_.end());
    }

    bool level(std::int32_t sink) {
        level_.assign(edges_from_.size(), -1);
        std::vector<std::int32_t> queue{source_};
        level_[source_] = 0;
        for (std::size_t i = 0; i < queue.size(); ++i)
            for (auto edge : edges_from_[queue[i]])
                if (left_[edge] > smallest_ && level_[to_[edge]] < 0) {
                    level_[to_[edge]] = level_[queue[i]] + 1;
                    queue.push_back(to_[edge]);
                }
        return level_[sink] >= 0;
    }

    // One path to the sink; without recursion, since a line of NPUs is as deep as it is long.
    double push(std::int32_t sink) {
        path_.clear();
        std::int32_t node = source_;
        while (node != sink) {
            auto& next = next_[node];
            const auto& edges = edges_from_[node];
            while (next < edges.size() && !(left_[edges[next]] > smallest_ &&
                                            level_[to_[edges[next]]] == level_[node] + 1))
                ++next;
            if (next < edges.size()) {
                path_.push_back(edges[next]);
                node = to_[edges[next]];
            } else {
                if (path_.empty()) return 0;
                level_[node] = -1;  // a dead end in this phase
                node = to_[path_.back() ^ 1];
                path_.pop_back();
            }
        }
        double amount = left_[path_.front()];
        for (auto edge : path_) amount = std::min(amount, left_[edge]);
        for (auto edge : path_) {
            left_[edge] -= amount;
            left_[edge ^ 1] += amount;
        }
        return amount;
    }

    const Network& net_;
    std::span<const double> supply_;
    std::int32_t source_;
    std::vector<std::vector<std::int32_t>> edges_from_;
    std::vector<std::int32_t> to_, level_, path_;
    std::vector<std::size_t> next_;
    std::vector<double> left_;
    double smallest_ = 0;
};

double seconds_of(const Network& net, std::span<const double> supply,
                  const std::vector<bool>& inside) {
    double bytes = 0, rate = 0;
    for (std::int32_t node = 0; node < net.nodes(); ++node)
        if (inside[node]) bytes += supply[node];
    for (std::int32_t link = 0; link < net.links(); ++link)
        if (inside[net.src[link]] && !inside[net.dst[link]])
            rate += static_cast<double>(net.speed[link].bandwidth);
    return rate > 0 ? bytes / rate : 0;
}

}  // namespace

// Dinkelbach's method: while the flow in the time known so far falls short, the smallest cut
// gives a strictly longer time.
Cut tightest_cut(const Network& network, std::span<const double> supply,
                 std::span<const std::int32_t> sinks, double seconds, std::int64_t budget) {
    Flow flow(network, supply);
    double total = 0;
    for (double s : supply) total += s;
    Cut best{seconds, {}};
    for (auto sink : sinks) {
        const double needed = total - supply[sink];
        while (budget > 0) {
            const double reached = flow.run(sink, best.seconds, budget) - supply[sink];
            if (reached >= needed * (1 - 1e-7)) break;
            auto inside = flow.source_side();
            const double longer = seconds_of(network, supply, inside);
            if (longer <= best.seconds * (1 + 1e-9)) break;
            best = {longer, std::move(inside)};
        }
    }
    return best;
}

}  // namespace weft
