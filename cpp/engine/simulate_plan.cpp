// Running rows in the order in which they were planned: the earliest times that keep it.
#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/radix.h"
#include "base/route_times.h"
#include "engine/simulate.h"

namespace weft {
namespace {

constexpr std::int32_t nobody = -1;
constexpr int most_passes = 1000;

// Starts are found from below: nothing may start before what it comes after, and all start at 0
// until something says otherwise. One pass, each node after all it comes after, settles most plans.
// Behind switches two rows can come after each other, on different links, so passes go on while
// something moves; the plan itself meets every condition, so they end below it.
class AsPlanned {
  public:
    AsPlanned(const Run& run, std::span<const ps> start, std::span<const ps> end)
        : run_(run), planned_start_(start), planned_end_(end),
          times_(run.network, run.routes, run.cost), leader_(start.size()),
          next_(start.size(), nobody), before_adding_(run.reducer > 0 ? start.size() : 0, nobody),
          end_(run.waits.size(), 0), planned_node_end_(end.begin(), end.end()),
          done_{std::vector<ps>(start.size(), 0), {}, std::vector<ps>(run.network.links(), 0)} {}

    Simulated simulate() && {
        find_order();
        find_transmissions();
        find_link_orders();
        if (run_.reducer > 0) find_adding_orders();
        sort_by_conditions();
        int passes = 0;
        while (pass())  // with time for adding, rows may hold each other up for ever
            if (run_.reducer > 0 && ++passes == most_passes)
                throw std::runtime_error("the planned order on links cannot be kept");
        end_.resize(planned_start_.size());
        done_.end = std::move(end_);
        return std::move(done_);
    }

  private:
    const RouteTimes& times(std::int32_t row) {
        return times_.of(run_.bytes[run_.rows.chunk[row]], run_.rows.route[row]);
    }

    // Rows of one chunk that leave one NPU at one time over one link start with the first of them,
    // which leads a list of them through `next_`. Where switches add, parts of a sum that reach one
    // NPU at one time over one link likewise end together: the longest leads, and the others start
    // as much later as they are shorter.
    void find_transmissions() {
        std::iota(leader_.begin(), leader_.end(), 0);
        later_.assign(leader_.size(), 0);
        const Network& net = run_.network;
        if (net.copies.empty() && net.adds.empty()) return;
        const auto key = [&](std::int32_t row) {
            const auto links = run_.routes[run_.rows.route[row]];
            const bool sum = run_.rows.reduce[row];
            const bool alone = links.empty() || (sum ? net.adds : net.copies).empty();
            return std::tuple(run_.rows.chunk[row], sum,
                              sum ? run_.rows.dst[row] : run_.rows.src[row],
                              sum ? planned_end_[row] : planned_start_[row],
                              alone ? -1 - row
                              : sum ? links.back()
                                    : links.front());
        };
        std::vector<ps> duration(leader_.size());
        for (auto row : leader_) duration[row] = times(row).duration;
        const auto shorter = [&](std::int32_t row) {
            return run_.rows.reduce[row] ? -duration[row] : 0;
        };
        std::vector<std::int32_t> sorted(leader_);
        std::stable_sort(sorted.begin(), sorted.end(), [&](auto a, auto b) {
            return std::pair(key(a), shorter(a)) < std::pair(key(b), shorter(b));
        });
        for (std::size_t i = 1; i < sorted.size(); ++i) {
            const auto row = sorted[i];
            if (key(row) != key(sorted[i - 1])) continue;
            leader_[row] = leader_[sorted[i - 1]];
            next_[sorted[i - 1]] = row;
            if (run_.rows.reduce[row]) later_[row] = duration[leader_[row]] - duration[row];
        }
    }

    // Whether an NPU adds what a row brings: of a sum that a switch made, it does so once.
    bool is_added(std::int32_t row) const { return run_.rows.reduce[row] && leader_[row] == row; }

    // That a row holds a link.
    struct Held {
        ps begin;  // as planned
        std::int32_t row;
        std::int64_t at;  // in before_
    };

    // For every link of every row, who holds it before.
    void find_link_orders() {
        std::vector<std::int64_t> offsets(static_cast<std::size_t>(run_.network.links()) + 1, 0);
        first_.reserve(planned_start_.size() + 1);
        first_.push_back(0);
        for (std::size_t row = 0; row < planned_start_.size(); ++row) {
            const auto links = run_.routes[run_.rows.route[row]];
            for (auto link : links) ++offsets[static_cast<std::size_t>(link) + 1];
            first_.push_back(first_.back() + static_cast<std::int64_t>(links.size()));
        }
        std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
        before_.assign(static_cast<std::size_t>(first_.back()), nobody);
        std::vector<Held> held(before_.size());  // by link
        std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
        for (auto row : order_) {
            if (row >= run_.waits.rows) continue;
            const auto& spans = times(row).holds;
            const auto links = run_.routes[run_.rows.route[row]];
            for (std::size_t k = 0; k < links.size(); ++k)
                held[next[links[k]]++] = {planned_start_[row] + spans[k].offset, row,
                                          first_[row] + static_cast<std::int64_t>(k)};
        }
        for (std::int32_t link = 0; link < run_.network.links(); ++link)
            order_on(link, {held.begin() + offsets[link], held.begin() + offsets[link + 1]});
    }

    // The rows of a transmission hold a link together, and come after the same row.
    void order_on(std::int32_t link, std::span<Held> held) {
        const auto earlier = [](const Held& a, const Held& b) { return a.begin < b.begin; };
        if (!std::is_sorted(held.begin(), held.end(), earlier))
            std::stable_sort(held.begin(), held.end(), earlier);
        std::int32_t last = nobody, before_last = nobody;
        for (const auto& one : held) {
            const bool same = last != nobody && leader_[one.row] == leader_[last];
            if (!same) {
                before_last = last;
                const auto k = static_cast<std::size_t>(one.at - first_[one.row]);
                done_.busy[link] += times(one.row).holds[k].length;
            }
            before_[one.at] = before_last;
            last = one.row;
        }
    }

    void find_adding_orders() {
        std::vector<std::int32_t> last(run_.network.npus, nobody);
        for (auto row : order_by({planned_end_.begin(), planned_end_.end()})) {
            if (!is_added(row)) continue;
            before_adding_[row] = std::exchange(last[run_.rows.dst[row]], row);
        }
    }

    // Nodes in the order in which they are planned. A join is planned to end when the last of those
    // it stands for is; it comes before the rows that start then, and after those that take no
    // time.
    void find_order() {
        planned_node_end_.resize(run_.waits.size(), 0);
        std::vector<ps> key(run_.waits.size());
        for (auto join = run_.waits.rows; join < run_.waits.size(); ++join) {
            for (auto node : run_.waits.waits[join])
                planned_node_end_[join] =
                    std::max(planned_node_end_[join], planned_node_end_[node]);
            key[join] = 4 * planned_node_end_[join] + 1;
        }
        for (std::int32_t row = 0; row < run_.waits.rows; ++row)
            key[row] = 4 * planned_start_[row] + (planned_end_[row] > planned_start_[row] ? 2 : 0);
        order_ = order_by(key);
    }

    // Puts each node after all that it comes after, where they do not come after each other; else
    // in the planned order. Of a transmission only the leader stays.
    void sort_by_conditions() {
        enum : std::uint8_t { unseen, entered };
        std::vector<std::uint8_t> state(run_.waits.size(), unseen);
        std::vector<std::int64_t> stack;  // nodes twice: to enter, and one more to leave
        std::vector<std::int32_t> sorted;
        sorted.reserve(order_.size());
        for (auto first : order_) {
            stack.push_back(2 * std::int64_t{unit(first)});
            while (!stack.empty()) {
                const auto node = static_cast<std::int32_t>(stack.back() / 2);
                const bool leaves = stack.back() % 2 == 1;
                stack.pop_back();
                if (leaves) sorted.push_back(node);
                if (leaves || state[node] != unseen) continue;
                state[node] = entered;
                stack.push_back(2 * std::int64_t{node} + 1);
                const auto comes_after = [&](std::int32_t other) {
                    if (state[unit(other)] == unseen)
                        stack.push_back(2 * std::int64_t{unit(other)});
                };
                if (node >= run_.waits.rows)
                    std::ranges::for_each(run_.waits.waits[node], comes_after);
                else
                    for (auto row = node; row != nobody; row = next_[row])
                        conditions(row, comes_after);
            }
        }
        order_ = std::move(sorted);
    }

    std::int32_t unit(std::int32_t node) const {
        return node < run_.waits.rows ? leader_[node] : node;
    }

    void conditions(std::int32_t row, const auto& comes_after) const {
        for (auto node : run_.waits.waits[row])
            if (planned_node_end_[node] <= planned_end_[row]) comes_after(node);
        for (auto at = first_[row]; at < first_[row + 1]; ++at)
            if (before_[at] != nobody) comes_after(before_[at]);
        if (run_.reducer > 0 && before_adding_[row] != nobody) comes_after(before_adding_[row]);
    }

    // Moves every node behind what it comes after; says whether anything moved.
    bool pass() {
        moved_ = false;
        for (auto node : order_) {
            if (node >= run_.waits.rows) {
                for (auto one : run_.waits.waits[node]) raise(end_[node], end_[one]);
                continue;
            }
            ps& start = done_.start[node];
            for (auto row = node; row != nobody; row = next_[row])
                raise(start, std::max(after_waits(row), after_links(row)) - later_[row]);
            for (auto row = node; row != nobody; row = next_[row]) {
                done_.start[row] = start + later_[row];
                raise(end_[row], end_of(row));
            }
        }
        return moved_;
    }

    void raise(ps& known, ps least) {
        if (least <= known) return;
        known = least;
        moved_ = true;
    }

    ps after_waits(std::int32_t row) {
        ps start = 0;
        for (auto node : run_.waits.waits[row]) {
            const ps planned = planned_node_end_[node];
            if (planned <= planned_start_[row])
                start = std::max(start, end_[node]);
            else if (planned <= planned_end_[row])  // only what it writes must wait
                start = std::max(start, end_[node] - times(row).duration);
        }
        return start;
    }

    ps after_links(std::int32_t row) {
        ps start = 0;
        const auto holds = times(row).holds;  // a copy: `times` may give up what it gave
        const auto links = run_.routes[run_.rows.route[row]];
        for (std::size_t k = 0; k < links.size(); ++k) {
            const auto before = before_[first_[row] + static_cast<std::int64_t>(k)];
            if (before == nobody) continue;
            const Hold hold = hold_of(before, links[k]);
            start =
                std::max(start, done_.start[before] + hold.offset + hold.length - holds[k].offset);
        }
        return start;
    }

    Hold hold_of(std::int32_t row, std::int32_t link) {
        const auto links = run_.routes[run_.rows.route[row]];
        return times(row).holds[std::find(links.begin(), links.end(), link) - links.begin()];
    }

    ps end_of(std::int32_t row) {
        const ps arrived = done_.start[row] + times(row).duration;
        if (run_.reducer == 0 || !is_added(row)) return arrived;
        const auto before = before_adding_[row];
        const ps free = before == nobody ? 0 : end_[before];
        return std::max(arrived, free) + run_.adding(row);
    }

    const Run& run_;
    std::span<const ps> planned_start_, planned_end_;
    TimesBySize times_;
    std::vector<std::int32_t> order_;          // of nodes, as planned
    std::vector<std::int32_t> leader_, next_;  // the row each one goes with; the next that does
    std::vector<ps> later_;                    // how much later than its leader it starts
    std::vector<std::int64_t> first_;          // by row: where its links lie in before_
    std::vector<std::int32_t> before_;         // by row and link: who holds the link before
    std::vector<std::int32_t> before_adding_;
    std::vector<ps> end_;
    std::vector<ps> planned_node_end_;
    bool moved_ = false;  // in this pass
    Simulated done_;
};

}  // namespace

Simulated run_as_planned(const Run& run, std::span<const ps> start, std::span<const ps> end) {
    return AsPlanned(run, start, end).simulate();
}

}  // namespace weft
