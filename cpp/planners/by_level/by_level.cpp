#include "planners/by_level/by_level.h"

#include <algorithm>
#include <map>
#include <queue>
#include <span>
#include <tuple>
#include <utility>

namespace weft {
namespace {

// Moves, and points where several have arrived, with who waits for whom.
class Graph {
  public:
    explicit Graph(const std::vector<Lane>& lanes) {
        for (std::size_t number = 0; number < lanes.size(); ++number)
            add_moves(lanes[number], static_cast<std::int32_t>(number));
        moves_ = static_cast<std::int32_t>(nodes_.size());
        std::int32_t first = 0;
        for (const Lane& lane : lanes) first = add_lane(lane, first);
    }

    struct Node {
        std::int32_t lane, type;  // type -1: nothing moves here
        std::int64_t turn = 0;    // among moves of the same step: the lowest first
        std::int32_t sums = -1;   // the number of the step, where it is one of the sums
        std::int32_t waits_for = 0, first_edge = -1;
    };
    std::int32_t moves() const { return moves_; }
    std::int32_t size() const { return static_cast<std::int32_t>(nodes_.size()); }
    const Node& operator[](std::int32_t node) const { return nodes_[node]; }
    template <class Handle>
    void for_each_after(std::int32_t node, Handle handle) const {
        for (auto edge = nodes_[node].first_edge; edge >= 0; edge = edges_[edge].next)
            handle(edges_[edge].node);
    }
    // Nodes so that none waits for a later one.
    std::vector<std::int32_t> in_order() const {
        std::vector<std::int32_t> order, waits(size());
        order.reserve(size());
        for (std::int32_t node = 0; node < size(); ++node)
            if ((waits[node] = nodes_[node].waits_for) == 0) order.push_back(node);
        for (std::size_t i = 0; i < order.size(); ++i)
            for_each_after(order[i], [&](auto later) {
                if (--waits[later] == 0) order.push_back(later);
            });
        return order;
    }

  private:
    struct Edge {
        std::int32_t node, next;
    };

    void connect(std::int32_t earlier, std::int32_t later) {
        if (earlier < 0) return;
        edges_.push_back({later, nodes_[earlier].first_edge});
        nodes_[earlier].first_edge = static_cast<std::int32_t>(edges_.size()) - 1;
        ++nodes_[later].waits_for;
    }
    std::int32_t add_point() {
        nodes_.push_back({-1, -1});
        return size() - 1;
    }

    // How many shares belong to different places along the levels scattered after a step.
    static std::int32_t later_shares(const Lane& lane, std::size_t step) {
        std::int32_t shares = 1;
        for (auto i = step + 1; i < lane.size.size(); ++i)
            if (lane.scatter[i]) shares *= lane.size[i];
        return shares;
    }
    // How many messages of an exchange differ along the levels beside one.
    static std::int32_t others(const Lane& lane, std::size_t step) {
        std::int32_t count = 1;
        for (std::size_t i = 0; i < lane.size.size(); ++i)
            if (i != step) count *= lane.size[i];
        return count;
    }
    // Half-way round a ring pieces take turns up and down.
    static bool is_up(std::int32_t size, std::int32_t distance, std::int32_t piece) {
        return distance <= (size - piece % 2) / 2;
    }
    // One place nearer round a ring.
    static std::int32_t nearer(std::int32_t size, std::int32_t distance, std::int32_t piece) {
        return is_up(size, distance, piece) ? distance - 1 : (distance + 1) % size;
    }

    void add_moves(const Lane& lane, std::int32_t number) {
        if (lane.exchange) {
            for (std::size_t step = 0; step < lane.size.size(); ++step) {
                const auto count = others(lane, step) * lane.pieces;
                for (std::int32_t distance = 1; distance < lane.size[step]; ++distance)
                    for (std::int32_t i = 0; i < count; ++i) {
                        // Those with the same turns follow each other.
                        const auto type = lane.there[lane.first[step] + distance - 1];
                        nodes_.push_back(
                            {number, type, (std::int64_t{type} * count + i) * lane.size[step]});
                    }
            }
            return;
        }
        const auto add_step = [&](std::size_t step, bool back) {
            const auto size = lane.size[step];
            const auto shares = later_shares(lane, step), count = shares * lane.pieces;
            for (std::int32_t distance = 1; distance < size; ++distance)
                for (std::int32_t i = 0; i < count; ++i) {
                    auto there = distance;
                    if (lane.ring[step])
                        there = is_up(size, distance, i % lane.pieces) ? 1 : size - 1;
                    // Share by share, so that the first go on early; an NPU's own come last.
                    const auto later = i / lane.pieces, piece = i % lane.pieces;
                    const auto away = (later + shares - 1) % shares;
                    const auto type = lane.first[step] + there - 1;
                    nodes_.push_back({number, back ? lane.back[type] : lane.there[type],
                                      (std::int64_t{piece} * shares + away) * size + distance,
                                      back ? -1 : static_cast<std::int32_t>(step)});
                }
        };
        const auto steps = lane.size.size();
        if (lane.sums)
            for (std::size_t step = 0; step < steps; ++step) add_step(step, false);
        if (lane.copies)
            for (auto step = steps; step-- > 0;)
                if (lane.scatter[step]) add_step(step, true);
    }

    // Adds who waits for whom; returns the first move of the next lane.
    std::int32_t add_lane(const Lane& lane, std::int32_t first) {
        if (lane.exchange) return add_exchange(lane, first);
        const auto steps = lane.size.size();
        // Of what is complete before a step: by share, then by piece; -1 from the start.
        std::vector<std::int32_t> complete(static_cast<std::size_t>(later_shares(lane, 0)) *
                                               (lane.scatter[0] ? lane.size[0] : 1) * lane.pieces,
                                           -1);
        if (lane.sums)
            for (std::size_t step = 0; step < steps; ++step)
                first = add_sums(lane, step, first, complete);
        if (!lane.copies) return first;
        std::vector<std::int32_t> had(lane.pieces, -1);
        if (lane.sums) had = complete;
        for (auto step = steps; step-- > 0;)
            if (lane.scatter[step]) first = add_copies(lane, step, first, had);
        return first;
    }

    // Each message waits for its move along the level before.
    std::int32_t add_exchange(const Lane& lane, std::int32_t first) {
        const auto pieces = static_cast<std::size_t>(lane.pieces);
        std::vector<std::int32_t> last(others(lane, 0) * lane.size[0] * pieces, -1);
        std::size_t below = 1;  // messages that differ along the levels before
        for (std::size_t step = 0; step < lane.size.size(); ++step) {
            const auto size = static_cast<std::size_t>(lane.size[step]);
            const auto count = static_cast<std::size_t>(others(lane, step));
            for (std::size_t distance = 1; distance < size; ++distance)
                for (std::size_t i = 0; i < count * pieces; ++i) {
                    const auto other = i / pieces;
                    const auto message =
                        other % below + below * (distance + size * (other / below));
                    auto& before = last[message * pieces + i % pieces];
                    connect(before, first);
                    before = first++;
                }
            below *= size;
        }
        return first;
    }

    std::int32_t add_sums(const Lane& lane, std::size_t step, std::int32_t first,
                          std::vector<std::int32_t>& complete) {
        const auto size = lane.size[step], pieces = lane.pieces;
        const auto count = later_shares(lane, step) * pieces;  // moves of one distance
        const bool scatter = lane.scatter[step];
        // Where a share that belongs `distance` places on stands among those complete before.
        const auto before = [&](std::int32_t distance, std::int32_t i) {
            if (!scatter) return complete[i];
            const auto later = i / pieces, piece = i % pieces;
            return complete[(distance + size * later) * pieces + piece];
        };
        // Where owners keep a copy apart before, nothing may be added until they have sent it.
        const bool kept = scatter && std::find(lane.scatter.begin(), lane.scatter.begin() + step,
                                               0) != lane.scatter.begin() + step;
        std::vector<std::int32_t> after(count);
        for (std::int32_t i = 0; i < count; ++i) {
            after[i] = add_point();
            connect(before(0, i), after[i]);
            for (std::int32_t distance = 1; distance < size; ++distance) {
                const auto move = first + (distance - 1) * count + i;
                connect(before(distance, i), move);
                if (kept) connect(before(0, i), move);
                const auto next = lane.ring[step] ? nearer(size, distance, i % pieces) : 0;
                connect(move, next == 0 ? after[i] : first + (next - 1) * count + i);
            }
        }
        complete = std::move(after);
        return first + (size - 1) * count;
    }

    std::int32_t add_copies(const Lane& lane, std::size_t step, std::int32_t first,
                            std::vector<std::int32_t>& had) {
        const auto size = lane.size[step], pieces = lane.pieces;
        const auto count = static_cast<std::int32_t>(had.size());
        std::vector<std::int32_t> has(static_cast<std::size_t>(count) * size);
        for (std::int32_t i = 0; i < count; ++i) {
            const auto later = i / pieces, piece = i % pieces;
            has[size * later * pieces + piece] = had[i];
            for (std::int32_t distance = 1; distance < size; ++distance) {
                const auto move = first + (distance - 1) * count + i;
                const auto from = lane.ring[step] ? nearer(size, distance, piece) : 0;
                connect(from == 0 ? had[i] : first + (from - 1) * count + i, move);
                has[(distance + size * later) * pieces + piece] = move;
            }
        }
        had = std::move(has);
        return first + (size - 1) * count;
    }

    std::vector<Node> nodes_;
    std::vector<Edge> edges_;
    std::int32_t moves_ = 0;
};

class Composer {
  public:
    Composer(const std::vector<Lane>& lanes, std::int32_t resources, Rule rule, Progress& progress)
        : lanes_(lanes), graph_(lanes), rule_(rule), progress_(progress), used_(resources),
          begins_(resources) {
        find_queues();
        find_priorities();
    }

    Composition run() {
        made_.ready.assign(graph_.moves(), 0);
        made_.start.assign(graph_.moves(), 0);
        waits_.resize(graph_.size());
        for (std::int32_t node = 0; node < graph_.size(); ++node)
            waits_[node] = graph_[node].waits_for;
        for (std::int32_t node = 0; node < graph_.size(); ++node)
            if (graph_[node].waits_for == 0) enqueue(node);
        start_moves();
        while (!events_.empty()) {
            now_ = events_.top().first;
            for (; !events_.empty() && events_.top().first == now_; events_.pop())
                if (const auto move = events_.top().second; move >= 0) arrive(move);
            start_moves();
            if (progress_.cancelled) throw Cancelled();
        }
        made_.time = last_;
        return std::move(made_);
    }

  private:
    using Waiting = std::tuple<ps, std::int64_t, std::int32_t>;  // priority, minus turn and move
    using Queue = std::priority_queue<Waiting>;

    std::span<const std::int32_t> resources_of(const MoveTypes& types, std::int32_t type) const {
        return std::span(types.resource)
            .subspan(types.offsets[type], types.offsets[type + 1] - types.offsets[type]);
    }
    // Moves that need the same resources wait in one queue.
    void find_queues() {
        std::map<std::vector<std::int32_t>, std::int32_t> number;
        for (const Lane& lane : lanes_) {
            auto& of_type = queue_of_.emplace_back();
            for (std::int32_t type = 0;
                 type < static_cast<std::int32_t>(lane.types.duration.size()); ++type) {
                const auto needed = resources_of(lane.types, type);
                of_type.push_back(
                    number.emplace(std::vector(needed.begin(), needed.end()), number.size())
                        .first->second);
            }
        }
        queues_.resize(number.size());
        for (const Lane& lane : lanes_)
            for (std::size_t i = 0; i < lane.types.resource.size(); ++i)
                begins_[lane.types.resource[i]].push_back(lane.types.begin[i]);
        for (auto& begins : begins_) {
            std::sort(begins.begin(), begins.end());
            begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
        }
    }
    // How long it takes from the start of each node until all that waits for it has arrived.
    void find_priorities() {
        priority_.assign(graph_.size(), 0);
        std::vector<ps> longest(lanes_.size(), 0);
        const auto order = graph_.in_order();
        for (auto i = order.rbegin(); i != order.rend(); ++i) {
            graph_.for_each_after(
                *i, [&](auto later) { priority_[*i] = std::max(priority_[*i], priority_[later]); });
            const auto& node = graph_[*i];
            if (node.type < 0) continue;
            priority_[*i] += lanes_[node.lane].types.duration[node.type];
            longest[node.lane] = std::max(longest[node.lane], priority_[*i]);
        }
        if (rule_ == Rule::far) return;
        for (std::int32_t move = 0; move < graph_.moves(); ++move)
            if (graph_[move].sums >= 0)
                priority_[move] = longest[graph_[move].lane] + graph_[move].sums;
    }

    void enqueue(std::int32_t node) {
        if (graph_[node].type < 0) {
            arrive(node);
            return;
        }
        made_.ready[node] = now_;
        queues_[queue_of_[graph_[node].lane][graph_[node].type]].emplace(priority_[node],
                                                                         -graph_[node].turn, -node);
    }
    void arrive(std::int32_t node) {
        last_ = now_;
        graph_.for_each_after(node, [&](auto later) {
            if (--waits_[later] == 0) enqueue(later);
        });
    }

    void start_moves() {
        active_.clear();
        for (std::size_t queue = 0; queue < queues_.size(); ++queue)
            if (!queues_[queue].empty() && is_free(queue)) active_.push_back(queue);
        std::sort(active_.begin(), active_.end(),
                  [&](auto a, auto b) { return queues_[a].top() > queues_[b].top(); });
        for (auto queue : active_)
            if (is_free(queue)) start(first_of(queue), queue);
    }
    std::int32_t first_of(std::size_t queue) const { return -std::get<2>(queues_[queue].top()); }
    // Whether the first of a queue can start now.
    bool is_free(std::size_t queue) const {
        const auto& node = graph_[first_of(queue)];
        const auto& types = lanes_[node.lane].types;
        for (auto i = types.offsets[node.type]; i < types.offsets[node.type + 1]; ++i)
            if (now_ + types.begin[i] < used_[types.resource[i]].until(types.turns[i]))
                return false;
        return true;
    }
    void start(std::int32_t move, std::size_t queue) {
        queues_[queue].pop();
        made_.start[move] = now_;
        const auto& types = lanes_[graph_[move].lane].types;
        const auto type = graph_[move].type;
        for (auto i = types.offsets[type]; i < types.offsets[type + 1]; ++i) {
            auto& used = used_[types.resource[i]];
            used.add(types.turns[i], now_ + types.same[i], now_ + types.other[i]);
            for (auto begin : begins_[types.resource[i]])
                for (auto until : {used.same, used.other})
                    if (until - begin > now_) events_.emplace(until - begin, -1);
        }
        events_.emplace(now_ + types.duration[type], move);
    }

    // When a resource can be used again.
    struct Used {
        ps same = 0, other = 0, before = 0;  // all uses; all uses; those before the last turns
        std::int32_t turns = -1;
        ps until(std::int32_t next) const { return std::max(same, next == turns ? before : other); }
        void add(std::int32_t next, ps same_until, ps other_until) {
            if (next != turns) before = other;
            turns = next;
            same = std::max(same, same_until);
            other = std::max(other, other_until);
        }
    };

    const std::vector<Lane>& lanes_;
    const Graph graph_;
    const Rule rule_;
    Progress& progress_;
    std::vector<Used> used_;                           // by resource
    std::vector<std::vector<ps>> begins_;              // by resource: when moves may begin with it
    std::vector<std::vector<std::int32_t>> queue_of_;  // by lane and type
    std::vector<Queue> queues_;
    std::vector<std::size_t> active_;
    std::vector<ps> priority_;
    std::vector<std::int32_t> waits_;
    std::priority_queue<std::pair<ps, std::int32_t>, std::vector<std::pair<ps, std::int32_t>>,
                        std::greater<>>
        events_;  // moves that arrive; -1 where only something becomes free
    ps now_ = 0, last_ = 0;
    Composition made_;
};

}  // namespace

Composition compose(const std::vector<Lane>& lanes, std::int32_t resources, Rule rule,
                    Progress& progress) {
    return Composer(lanes, resources, rule, progress).run();
}

}  // namespace weft
