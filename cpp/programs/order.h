// The order of a program's events: what must happen before what.
//
// Events lie in chains (a thread block's steps run one after the other) with further edges between
// them (a message is received after it is sent). Chains and edges say all that is sure; whatever
// they leave open may happen in any order.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace weft::program {

struct Chains {
    std::span<const std::int64_t> offsets, events;  // chain c: events[offsets[c] .. offsets[c + 1])
};

struct Edges {
    std::span<const std::int64_t> from, to;
    std::size_t size() const { return from.size(); }
};

class Order {
  public:
    // The first 2 * `actions` events are pairs: an action's second follows its first. An event may
    // lie in one chain at most.
    Order(std::int64_t events, std::int64_t actions, Chains chains, Edges edges);

    // Every event after all that must come before it; events of a cycle, and all behind them, are
    // left out.
    const std::vector<std::int64_t>& sequence() const { return sequence_; }
    bool has_cycle() const { return sequence_.size() < level_.size(); }
    // Events of one cycle, each before the next and the last before the first.
    std::vector<std::int64_t> cycle() const;

    // Whether `first` surely happens before `second`, which follows it in the sequence.
    bool before(std::int64_t first, std::int64_t second);
    // Whether the search for an answer had to be given up; the answer was then no.
    bool gave_up() const { return visits_ > most_visits; }

  private:
    static constexpr std::int64_t most_visits = 200'000'000;

    struct Spot {
        std::int32_t chain = -1;
        std::int64_t at = 0;
    };

    std::span<const std::int64_t> causes(std::int64_t event) const {
        return {causes_.data() + cause_offsets_[event], causes_.data() + cause_offsets_[event + 1]};
    }
    void link(std::int64_t actions, Chains chains, Edges edges);
    void sort_by_level();
    bool is_known(std::int64_t event, Spot goal) const;
    bool search(std::int64_t first, std::int64_t second);
    void remember(std::int64_t event, Spot goal);
    static std::uint64_t key(std::int32_t later, std::int32_t earlier) {
        return static_cast<std::uint64_t>(later) << 32 | static_cast<std::uint32_t>(earlier);
    }

    std::vector<std::int64_t> cause_offsets_, causes_;  // direct causes of each event
    std::vector<Spot> spot_;
    std::vector<std::int32_t> level_;  // longest way from a start; -1: on or behind a cycle
    std::vector<std::int64_t> sequence_;
    // Of pairs of chains (later, earlier): a place in the later one at and after which all of the
    // earlier one up to some place is known to have happened.
    struct Known {
        std::int64_t from, upto;
    };
    std::unordered_map<std::uint64_t, Known> known_;
    std::vector<std::int64_t> seen_, parent_, queue_;
    std::int64_t stamp_ = 0, visits_ = 0;
};

}  // namespace weft::program
