#include "traces/run.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <queue>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "traces/id_table.h"

namespace weft {
namespace {

// Those that wait for something only one can have, first the one of the lowest key, then of the
// lowest number.
using Queue = std::priority_queue<std::pair<ps, std::uint32_t>,
                                  std::vector<std::pair<ps, std::uint32_t>>, std::greater<>>;

struct Turns {
    bool taken = false;
    Queue waiting;

    // Whose turn it is, if it is anybody's.
    std::uint32_t next() {
        if (taken || waiting.empty()) return no_node;
        const std::uint32_t node = waiting.top().second;
        waiting.pop();
        taken = true;
        return node;
    }
};

class TraceRun {
  public:
    TraceRun(const RunGraph& graph, Carrier& carrier, const RunScale& scale)
        : graph_(graph), carrier_(carrier), scale_(scale), clock_(scale.end), waits_(graph.waits),
          next_(graph.size(), no_node), head_(graph.channels.size(), no_node),
          tail_(graph.channels.size(), no_node), left_(graph.ranks()) {
        out_.start.assign(graph.size(), -1);
        out_.end.assign(graph.size(), -1);
        out_.cause.assign(graph.size(), no_node);
        out_.finish.assign(graph.ranks(), 0);
        if (scale.rules == RunRules::custom)
            tables_.resize(graph.ranks());
        else
            turns_.resize(graph.ranks());
    }

    TraceOutcome run() && {
        for (std::int32_t rank = 0; rank < graph_.ranks(); ++rank) begin(rank);
        while (!clock_.done()) handle(clock_.next());
        for (std::int32_t rank = 0; rank < graph_.ranks(); ++rank)
            if (left_[rank] > 0) out_.finish[rank] = -1;
        find_stuck();
        for (auto* times : {&out_.start, &out_.end, &out_.finish})
            for (auto& time : *times) time *= time > 0 ? scale_.step : 1;
        out_.sender = std::move(next_);
        return std::move(out_);
    }

  private:
    void begin(std::int32_t rank) {
        const std::uint32_t first = graph_.firsts[rank], last = graph_.firsts[rank + 1];
        left_[rank] = last - first;
        const auto roots = graph_.roots_of(rank);
        ready_.assign(roots.begin(), roots.end());
        start_ready(rank);
    }

    void handle(const RunEvent& event) {
        switch (event.happening()) {
            case Happening::comp_ends:
                end_comps(event.subject);
                return;
            case Happening::recv_ends:
                finish(event.subject);
                return;
            case Happening::message_arrives:
                if (carrier_.arrive(event, clock_)) deliver(event.subject);
                return;
            case Happening::link_frees:
                carrier_.release(event.subject, clock_);
        }
    }

    // Everything that `ready_` has, and what waited for its turn, as far as the rules allow it.
    void start_ready(std::int32_t rank) {
        if (scale_.rules == RunRules::custom) {
            if (ready_.size() > 1) order_by_table(rank);
        } else {
            for (const RunKind kind : {RunKind::comp, RunKind::host, RunKind::send})
                take_turns(rank, kind);
            std::sort(ready_.begin(), ready_.end());
        }
        for (const auto node : ready_) start(node);
    }

    // Puts them in the rank's table, which grows with the most it ever held, and takes them out. It
    // is empty between times, so that one alone would leave it as it is.
    void order_by_table(std::int32_t rank) {
        IdTable& table = tables_[rank];
        for (const auto node : ready_) table.emplace(graph_.id_on(rank, node), node);
        for (auto& node : ready_) {
            node = table.begin()->second;
            table.erase(table.begin());
        }
    }

    // Takes out of `ready_` what has to wait for its turn, and puts in whose turn it is.
    void take_turns(std::int32_t rank, RunKind kind) {
        Turns& turns = turns_of(rank, kind);
        std::erase_if(ready_, [&](std::uint32_t node) {
            if (graph_.kind[node] != kind || !waits_its_turn(node)) return false;
            turns.waiting.push({scale_.rules == RunRules::weft ? clock_.now() : 0, node});
            return true;
        });
        if (const auto node = turns.next(); node != no_node) ready_.push_back(node);
    }

    Turns& turns_of(std::int32_t rank, RunKind kind) {
        return turns_[rank][static_cast<std::size_t>(kind)];
    }

    // Whether a node needs what only one of its kind and rank can have at a time.
    bool waits_its_turn(std::uint32_t node) const {
        const RunKind kind = graph_.kind[node];
        if (scale_.rules == RunRules::plain) return kind != RunKind::recv;
        return scale_.rules == RunRules::weft && graph_.detail[node] > 0 &&
               (kind == RunKind::comp || kind == RunKind::host);
    }

    void start(std::uint32_t node) {
        out_.start[node] = clock_.now();
        out_.cause[node] = ending_;
        switch (graph_.kind[node]) {
            case RunKind::send:
                carrier_.send(node, clock_);
                return;
            case RunKind::recv:
                receive(node);
                return;
            default:
                compute(node);
        }
    }

    void compute(std::uint32_t node) {
        const ps micros = graph_.detail[node];
        const ps length = micros > 0 ? micros * scale_.microsecond : scale_.least_comp;
        if (scale_.rules == RunRules::custom) {
            // COMPs of one rank that end together share the event of the first.
            auto& [first, last] =
                together_
                    .try_emplace({graph_.rank_of(node), clock_.now() + length}, no_node, no_node)
                    .first->second;
            if (append(first, last, node)) return;
        }
        clock_.schedule(length, Happening::comp_ends, node);
    }

    void end_comps(std::uint32_t node) {
        if (scale_.rules == RunRules::custom) {
            together_.erase({graph_.rank_of(node), clock_.now()});
            while (node != no_node) finish(std::exchange(node, next_[node]));
        } else {
            finish(node);
        }
    }

    void deliver(std::uint32_t send) {
        finish(send);
        const auto channel = graph_.detail[send];
        if (head_[channel] != no_node && graph_.kind[head_[channel]] == RunKind::recv) {
            const std::uint32_t recv = take_first(channel);
            next_[recv] = send;
            finish(recv);
        } else {
            append(head_[channel], tail_[channel], send);
        }
    }

    void receive(std::uint32_t recv) {
        const auto channel = graph_.detail[recv];
        if (head_[channel] != no_node && graph_.kind[head_[channel]] == RunKind::send) {
            next_[recv] = take_first(channel);
            clock_.schedule(0, Happening::recv_ends, recv);
        } else {
            append(head_[channel], tail_[channel], recv);
        }
    }

    // Whether there was something in the list before.
    bool append(std::uint32_t& head, std::uint32_t& tail, std::uint32_t node) {
        const bool more = head != no_node;
        (more ? next_[tail] : head) = node;
        tail = node;
        next_[node] = no_node;
        return more;
    }

    std::uint32_t take_first(std::int64_t channel) {
        const std::uint32_t node = head_[channel];
        head_[channel] = next_[node];
        return node;
    }

    void finish(std::uint32_t node) {
        const std::int32_t rank = graph_.rank_of(node);
        out_.end[node] = out_.finish[rank] = clock_.now();
        --left_[rank];
        if (waits_its_turn(node)) turns_of(rank, graph_.kind[node]).taken = false;
        ready_.clear();
        for (const auto child : graph_.children_of(node))
            if (--waits_[child] == 0) ready_.push_back(child);
        ending_ = node;
        start_ready(rank);
        ending_ = no_node;
        if (scale_.rules == RunRules::plain && left_[rank] == 0) check_statistics(rank, node);
    }

    // ASTRA-sim's statistics of a rank throw if it had COMPs on the CPU; only a COMP catches that.
    void check_statistics(std::int32_t rank, std::uint32_t last) const {
        if (graph_.kind[last] != RunKind::send && graph_.kind[last] != RunKind::recv) return;
        for (auto node = graph_.firsts[rank]; node < graph_.firsts[rank + 1]; ++node)
            if (graph_.kind[node] == RunKind::host)
                throw std::invalid_argument(graph_.name_of(node) +
                                            " is a COMP with is_cpu_op, and the last of its rank "
                                            "to end is a message; ASTRA-sim aborts");
    }

    // A message always arrives, so what never ends waits for a COMM_RECV that nothing came for.
    void find_stuck() {
        std::unordered_map<std::int64_t, std::vector<std::uint32_t>> unsent;
        for (std::uint32_t node = graph_.size(); node-- > 0;)
            if (graph_.kind[node] == RunKind::send && out_.start[node] < 0)
                unsent[graph_.detail[node]].push_back(node);
        for (std::uint32_t node = 0; node < graph_.size(); ++node) {
            if (graph_.kind[node] != RunKind::recv || out_.start[node] < 0 || out_.end[node] >= 0)
                continue;
            Stuck stuck{node, no_node};
            const auto found = unsent.find(graph_.detail[node]);
            if (found != unsent.end() && !found->second.empty()) {
                stuck.send = found->second.back();
                found->second.pop_back();
            }
            out_.stuck.push_back(stuck);
        }
    }

    const RunGraph& graph_;
    Carrier& carrier_;
    const RunScale scale_;
    RunClock clock_;
    std::vector<std::uint32_t> waits_;
    // Lists of nodes, each in one at a time: COMM_RECVs that wait or COMM_SENDs that have arrived,
    // by channel, and COMPs that end together. A COMM_RECV that is in none has its COMM_SEND here.
    std::vector<std::uint32_t> next_, head_, tail_;
    std::map<std::pair<std::int32_t, ps>, std::pair<std::uint32_t, std::uint32_t>> together_;
    std::vector<std::array<Turns, 4>> turns_;  // by rank, then RunKind
    std::vector<IdTable> tables_;              // by rank
    std::vector<std::uint32_t> left_;          // by rank: nodes that have not ended
    std::vector<std::uint32_t> ready_;
    std::uint32_t ending_ = no_node;
    TraceOutcome out_;
};

}  // namespace

TraceOutcome run_trace(const RunGraph& graph, Carrier& carrier, const RunScale& scale) {
    return TraceRun(graph, carrier, scale).run();
}

std::vector<std::uint32_t> critical_chain(const RunGraph& graph, const TraceOutcome& outcome) {
    std::vector<std::uint32_t> path;
    if (graph.size() == 0) return path;
    const auto latest = std::max_element(outcome.end.begin(), outcome.end.end());
    auto node = static_cast<std::uint32_t>(latest - outcome.end.begin());
    if (*latest < 0) return path;
    while (node != no_node) {
        path.push_back(node);
        const bool came_late = graph.kind[node] == RunKind::recv &&
                               outcome.end[outcome.sender[node]] > outcome.start[node];
        node = came_late ? outcome.sender[node] : outcome.cause[node];
    }
    std::reverse(path.begin(), path.end());
    return path;
}

}  // namespace weft
