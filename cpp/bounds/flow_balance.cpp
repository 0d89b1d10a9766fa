#include "bounds/flow.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "bounds/flow_router.h"

namespace weft {
namespace {

constexpr double longest = 0x1p36;            // of the lengths
constexpr std::int64_t most_loads = 1 << 22;  // numbers kept: a load for each block and link
constexpr std::size_t blocks_at_once = 2;     // under the same prices, on any number of threads
constexpr std::int64_t most_blocks = 128;
constexpr double first_steepness = 40, steeper = 1.1, steepest = 2000;
constexpr double met = 1 - 1e-5, gain = 1 + 1e-4;
constexpr int passes_a_look = 2, looks_without_gain = 50;

// Frank-Wolfe's method, block after block, on the sum over links of exp(steepness · load / largest
// load). A block is a few sources with their flow; the derivatives are the prices of the links.
class Balancer {
  public:
    Balancer(const Network& network, std::span<const double> capacity, const Flows& flows,
             int threads)
        : net_(network), capacity_(capacity), flows_(flows), threads_(threads),
          price_(network.links(), 1.0), sum_(network.links(), 0.0) {
        std::vector<std::int32_t> sources;
        for (std::int32_t node = 0; node < net_.nodes(); ++node)
            if (flows.offsets[node] < flows.offsets[node + 1]) sources.push_back(node);
        sources_ = static_cast<std::int64_t>(sources.size());
        const auto fit =
            std::clamp<std::int64_t>(most_loads / std::max(net_.links(), 1), 1, most_blocks);
        blocks_.resize(std::clamp<std::int64_t>(sources_, 1, fit));
        for (std::size_t i = 0; i < sources.size(); ++i)
            blocks_[i % blocks_.size()].sources.push_back(sources[i]);
    }

    Balance run(double enough, std::int64_t budget) {
        const std::int64_t visits = std::max<std::int64_t>(sources_ * net_.links(), 1);
        route_all();
        look(price_);
        budget -= 2 * visits;
        double steepness = first_steepness, before = best_.seconds;
        for (int idle = 0; budget > 0 && idle < looks_without_gain && !done(enough);) {
            std::vector<double> mean(net_.links(), 0.0);
            for (int i = 0; i < passes_a_look; ++i) {
                pass(steepness, mean);
                steepness = std::min(steepness * steeper, steepest);
            }
            look(mean);
            budget -= (passes_a_look + 1) * visits;
            idle = best_.seconds > before * gain ? 0 : idle + 1;
            before = std::max(before, best_.seconds);
        }
        best_.loads = sum_;
        return best_;
    }

  private:
    struct Block {
        std::vector<std::int32_t> sources;
        std::vector<double> loads, found;  // of its flow, and by the cheapest ways: seconds a link
    };

    double largest() const { return *std::max_element(sum_.begin(), sum_.end()); }

    bool done(double enough) const { return best_.seconds >= std::min(enough, time_ * met); }

    // One more than the price, so that among links of no price the shorter way is taken.
    std::vector<std::int64_t> lengths(const std::vector<double>& price) const {
        std::vector<double> exact(net_.links());
        for (std::int32_t l = 0; l < net_.links(); ++l) exact[l] = price[l] / capacity_[l];
        const double scale = longest / *std::max_element(exact.begin(), exact.end());
        std::vector<std::int64_t> result(net_.links());
        for (std::int32_t l = 0; l < net_.links(); ++l)
            result[l] = 1 + static_cast<std::int64_t>(exact[l] * scale);
        return result;
    }

    // The cheapest ways for some blocks, all under today's prices.
    void route(std::size_t first, std::size_t end) {
        const auto today = lengths(price_);
        const Metric metric(net_, today);
        in_parallel(end - first, threads_, [&](std::size_t i) {
            auto& block = blocks_[first + i];
            block.found.assign(net_.links(), 0.0);
            FlowRouter router(metric, flows_);
            for (auto source : block.sources) router.route(source, block.found);
            for (std::int32_t l = 0; l < net_.links(); ++l) block.found[l] /= capacity_[l];
        });
    }

    void route_all() {
        route(0, blocks_.size());
        for (auto& block : blocks_) block.loads = block.found;
        add_up();
    }

    void add_up() {
        std::fill(sum_.begin(), sum_.end(), 0.0);
        for (const auto& block : blocks_)
            for (std::int32_t l = 0; l < net_.links(); ++l) sum_[l] += block.loads[l];
        time_ = std::min(time_, largest());
    }

    void pass(double steepness, std::vector<double>& mean) {
        for (std::size_t first = 0; first < blocks_.size(); first += blocks_at_once) {
            const double top = largest(), rate = steepness / top;
            for (std::int32_t l = 0; l < net_.links(); ++l) {
                price_[l] = std::exp(rate * (sum_[l] - top));
                mean[l] += price_[l];
            }
            const auto end = std::min(first + blocks_at_once, blocks_.size());
            route(first, end);
            for (auto i = first; i < end; ++i) shift(blocks_[i], rate, top);
        }
        add_up();
    }

    void shift(Block& block, double rate, double top) {
        const double part = step(block, rate);
        if (part == 0) return;
        for (std::int32_t l = 0; l < net_.links(); ++l) {
            const double change = part * (block.found[l] - block.loads[l]);
            if (change == 0) continue;
            block.loads[l] += change;
            sum_[l] += change;
            price_[l] = std::exp(rate * (sum_[l] - top));
        }
    }

    // What part of a block's flow to shift: Newton's step, no further than its model holds.
    double step(const Block& block, double rate) const {
        double slope = 0, bend = 0, most = 0;
        for (std::int32_t l = 0; l < net_.links(); ++l) {
            const double change = block.found[l] - block.loads[l];
            slope -= price_[l] * change;
            bend += price_[l] * change * change;
            most = std::max(most, std::abs(change));
        }
        if (slope <= 0 || bend <= 0) return 0;
        return std::min({1.0, slope / (rate * bend), 1 / (rate * most)});
    }

    // What these prices prove.
    void look(const std::vector<double>& price) {
        auto whole = lengths(price);
        const double total = shortest_routing(net_, whole, flows_, threads_).total;
        double room = 0;
        for (std::int32_t l = 0; l < net_.links(); ++l)
            room += static_cast<double>(whole[l]) * capacity_[l];
        if (best_.lengths.empty() || total / room > best_.seconds) {
            best_.seconds = total / room;
            best_.lengths = std::move(whole);
        }
    }

    const Network& net_;
    std::span<const double> capacity_;
    const Flows& flows_;
    const int threads_;
    std::int64_t sources_ = 0;
    std::vector<Block> blocks_;
    std::vector<double> price_, sum_;  // per link; `sum_` is the load of all blocks, in seconds
    double time_ = 1e300;              // the least that a flow was seen to take
    Balance best_;
};

}  // namespace

Balance balance(const Network& network, std::span<const double> capacity, const Flows& flows,
                double enough, std::int64_t budget, int threads) {
    return Balancer(network, capacity, flows, threads).run(enough, budget);
}

}  // namespace weft
