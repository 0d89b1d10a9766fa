#include "traces/flow.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/grouping.h"

namespace weft::trace {
namespace {

constexpr std::int64_t nothing = -1;
constexpr std::size_t most_parts = std::size_t{1} << 26;  // of all messages together
constexpr std::size_t most_own = 4096;  // of an NPU: beyond, what it adds counts as something new

// Sizes are below 2^60 each; sums stay where they can be compared.
std::int64_t plus(std::int64_t a, std::int64_t b) { return std::min(a + b, std::int64_t{1} << 61); }

// Parts with what is known of them; parts that turn out to be the same are joined.
class Parts {
  public:
    explicit Parts(std::size_t npus) : own_(npus) {}

    std::int32_t add(std::int32_t npu, std::int64_t bytes) {
        const auto part = static_cast<std::int32_t>(same_.size());
        same_.push_back(part);
        npu_.push_back(npu);
        bytes_.push_back(bytes);
        own_[npu].push_back(part);
        return part;
    }
    std::int32_t find(std::int32_t part) {
        while (same_[part] != part) part = same_[part] = same_[same_[part]];
        return part;
    }
    void join(std::int32_t a, std::int32_t b) {
        a = find(a), b = find(b);
        same_[std::max(a, b)] = std::min(a, b);
    }
    std::int32_t npu(std::int32_t part) const { return npu_[part]; }
    std::int64_t bytes(std::int32_t part) const { return bytes_[part]; }
    const std::vector<std::int32_t>& of(std::int32_t npu) const { return own_[npu]; }
    std::size_t size() const { return same_.size(); }

  private:
    std::vector<std::int32_t> same_, npu_;
    std::vector<std::int64_t> bytes_;
    std::vector<std::vector<std::int32_t>> own_;
};

// The parts of one value, in the pool; values that have the same parts share them.
struct Held {
    std::int64_t begin = 0, end = 0;
    bool empty() const { return begin == end; }
    bool operator==(const Held&) const = default;
};

// Values are what nodes can wait for: messages that arrive, then results of computing nodes.
class Follower {
  public:
    Follower(const Graph& graph, const Levels& levels, std::span<const std::int32_t> rank,
             std::int32_t ranks, Direction direction)
        : graph_(graph), rank_(rank), ranks_(ranks), direction_(direction),
          words_(static_cast<std::size_t>(ranks + 63) / 64), parts_(rank.size()) {
        number_values();
        order_values(levels);
        find_reads();
        find_sizes();
        if (ranks > 0) find_contributors();
        find_open();
    }

    Flow run(bool find_parts) {
        if (find_parts && direction_ != Direction::spread) collect();
        if (find_parts && direction_ != Direction::collect && flow_.fault == Fault::none) spread();
        if (flow_.fault == Fault::none) finish();
        return std::move(flow_);
    }

  private:
    std::int64_t values() const { return static_cast<std::int64_t>(node_.size()); }
    std::int64_t pooled() const { return static_cast<std::int64_t>(pool_.size()); }
    bool is_message(std::int64_t value) const { return value < graph_.messages(); }
    // The NPU at which a value is there to be used.
    std::int32_t place(std::int64_t value) const {
        return graph_.npu[is_message(value) ? graph_.recv[value] : node_[value]];
    }
    std::uint64_t* contributors(std::int64_t value) {
        return contributors_.data() + static_cast<std::size_t>(value) * words_;
    }
    bool fail(Fault fault, std::int64_t node, std::int64_t found) {
        if (flow_.fault == Fault::none) flow_.fault = fault, flow_.node = node, flow_.found = found;
        return false;
    }

    void number_values() {
        node_.assign(graph_.send.begin(), graph_.send.end());
        value_of_.assign(static_cast<std::size_t>(graph_.nodes()), nothing);
        for (std::int64_t m = 0; m < graph_.messages(); ++m) value_of_[graph_.recv[m]] = m;
        for (std::int64_t i = 0; i < graph_.nodes(); ++i)
            if (graph_.message[i] < 0) {
                value_of_[i] = values();
                node_.push_back(i);
            }
    }

    // By level: a value comes after all it reads.
    void order_values(const Levels& levels) {
        std::size_t deepest = 0;
        for (const auto node : node_) deepest = std::max<std::size_t>(deepest, levels.level[node]);
        order_ = grouped<std::int64_t>(deepest + 1, [&](const auto& add) {
                     for (std::int64_t v = 0; v < values(); ++v) add(levels.level[node_[v]], v);
                 }).items;
    }

    void find_reads() {
        for (const auto node : node_) {
            for (auto k = graph_.offsets[node]; k < graph_.offsets[node + 1]; ++k)
                if (const auto read = value_of_[graph_.waits[k]]; graph_.carries[k] && read >= 0)
                    reads_.items.push_back(read);
            reads_.close();
        }
        readers_ = grouped<std::int64_t>(node_.size(), [&](const auto& add) {
            for (std::int64_t v = 0; v < values(); ++v)
                for (const auto read : reads_[v]) add(read, v);
        });
    }

    // A sum is as large as the smallest of what it adds up: the rest of a larger one stays behind.
    // A node that computes from nothing received has nothing to pass on.
    void find_sizes() {
        size_.assign(graph_.bytes.begin(), graph_.bytes.end());
        size_.resize(node_.size(), 0);
        for (const auto v : order_) {
            if (is_message(v)) continue;
            for (const auto read : reads_[v])
                if (size_[read] > 0 && (size_[v] == 0 || size_[read] < size_[v]))
                    size_[v] = size_[read];
        }
    }

    void find_contributors() {
        contributors_.assign(node_.size() * words_, 0);
        joins_.assign(node_.size(), false);
        for (const auto v : order_) {
            std::uint64_t* mine = contributors(v);
            if (const auto own = is_message(v) ? rank_[graph_.npu[node_[v]]] : -1; own >= 0)
                mine[own / 64] |= std::uint64_t{1} << (own % 64);
            bool twice = false;
            for (const auto read : reads_[v])
                for (std::size_t w = 0; w < words_; ++w) {
                    twice = twice || (mine[w] & contributors(read)[w]);
                    mine[w] |= contributors(read)[w];
                }
            // What has a contribution in common cannot be added up: the node only waits for it.
            joins_[v] = twice && !is_message(v);
        }
    }

    bool has_all(std::int64_t value) {
        int count = 0;
        for (std::size_t w = 0; w < words_; ++w) count += std::popcount(contributors(value)[w]);
        return count == ranks_;
    }

    // Values that are still being collected.
    void find_open() {
        open_.assign(node_.size(), direction_ == Direction::collect);
        for (const auto v : order_) {
            if (direction_ == Direction::collect_and_spread && is_message(v))
                open_[v] = !has_all(v);
            if (is_message(v) || direction_ == Direction::spread) continue;
            bool all = size_[v] > 0 && !(ranks_ > 0 && joins_[v]);
            for (const auto read : reads_[v]) all = all && (open_[read] || size_[read] == 0);
            open_[v] = all;
        }
        held_.resize(node_.size());
    }

    // Whether a part is new to the set that has this stamp.
    bool first_time(std::int32_t part, std::int64_t stamp) {
        if (taken_.size() < parts_.size()) taken_.resize(parts_.size() + parts_.size() / 2);
        return std::exchange(taken_[part], stamp) != stamp;
    }

    // Adds parts that are not yet in the set at the pool's end; returns their bytes.
    std::int64_t take(std::int64_t stamp, Held from) {
        std::int64_t bytes = 0;
        for (auto k = from.begin; k < from.end; ++k) {
            const auto part = parts_.find(pool_[k]);
            if (!first_time(part, stamp)) continue;
            pool_.push_back(part);
            bytes = plus(bytes, parts_.bytes(part));
        }
        return bytes;
    }

    // Says that two values have the same parts.
    bool equate(Held a, Held b, std::int64_t node) {
        if (a == b) return true;
        if (a.end - a.begin == 1 && b.end - b.begin == 1) {
            parts_.join(pool_[a.begin], pool_[b.begin]);
            return true;
        }
        const auto sorted = [&](Held held) {
            std::vector<std::int32_t> found;
            for (auto k = held.begin; k < held.end; ++k) found.push_back(parts_.find(pool_[k]));
            std::sort(found.begin(), found.end());
            return found;
        };
        return sorted(a) == sorted(b) || fail(Fault::unlike, node, 0);
    }

    Held new_part(std::int32_t npu, std::int64_t bytes) {
        const auto begin = pooled();
        pool_.push_back(parts_.add(npu, bytes));
        return {begin, begin + 1};
    }

    // Adds to a set what the NPU itself has: all its parts if their bytes are the ones missing,
    // else a new one.
    void add_own(std::int64_t stamp, std::int32_t npu, std::int64_t missing) {
        std::int64_t own = 0;
        const auto begin = pool_.size();
        const auto& candidates = parts_.of(npu);
        for (std::size_t i = 0; i < std::min(candidates.size(), most_own); ++i) {
            const auto root = parts_.find(candidates[i]);
            if (!first_time(root, stamp)) continue;
            own = plus(own, parts_.bytes(root));
            pool_.push_back(root);
            if (own > missing) break;
        }
        if (own == missing) return;
        pool_.resize(begin);
        pool_.push_back(parts_.add(npu, missing));
    }

    void collect() {
        for (auto at = order_.rbegin(); at != order_.rend(); ++at)
            if (open_[*at] && size_[*at] > 0 && !(collect(*at) && small_enough(*at))) return;
    }

    bool collect(std::int64_t v) {
        std::int64_t like = nothing;
        bool smaller = false;
        for (const auto reader : readers_[v]) {
            if (!open_[reader] || size_[reader] == 0) continue;
            if (size_[reader] > size_[v]) return fail(Fault::mixed_use, receiver(v), size_[reader]);
            if (size_[reader] < size_[v])
                smaller = true;
            else if (like == nothing)
                like = reader;
            else if (!equate(held_[like], held_[reader], receiver(v)))
                return false;
        }
        if (like != nothing)
            held_[v] = held_[like];
        else if (!smaller)
            held_[v] = new_part(place(v), size_[v]);
        else
            return collect_pieces(v);
        return true;
    }

    bool small_enough(std::int64_t v) {
        return pool_.size() <= most_parts || fail(Fault::too_many, node_[v], most_parts);
    }

    std::int64_t receiver(std::int64_t v) const {
        return is_message(v) ? graph_.recv[v] : node_[v];
    }

    bool collect_pieces(std::int64_t v) {
        const auto begin = pooled();
        const auto stamp = ++stamp_;
        std::int64_t bytes = 0;
        for (const auto reader : readers_[v])
            if (open_[reader] && size_[reader] > 0) bytes = plus(bytes, take(stamp, held_[reader]));
        if (bytes > size_[v]) return fail(Fault::mixed_use, receiver(v), bytes);
        if (bytes < size_[v]) add_own(stamp, place(v), size_[v] - bytes);
        held_[v] = {begin, pooled()};
        return true;
    }

    void spread() {
        for (const auto v : order_) {
            if (open_[v]) continue;
            if (!(is_message(v) ? spread(v) : pass(v)) || !small_enough(v)) return;
        }
    }

    // A computing node has all that it waits for.
    bool pass(std::int64_t v) {
        if (reads_[v].empty()) return true;
        if (reads_[v].size() == 1) {
            held_[v] = held_[reads_[v][0]];
            return true;
        }
        const auto begin = pooled();
        const auto stamp = ++stamp_;
        for (const auto read : reads_[v]) take(stamp, held_[read]);
        held_[v] = {begin, pooled()};
        return true;
    }

    bool spread(std::int64_t m) {
        std::int64_t first = nothing;
        for (const auto read : reads_[m]) {  // the end of a sum: all of it is the same part
            if (!open_[read] || size_[read] != size_[m]) continue;
            if (first == nothing)
                first = read;
            else if (!equate(held_[first], held_[read], node_[m]))
                return false;
        }
        const auto begin = pooled();
        const auto stamp = ++stamp_;
        std::int64_t bytes = 0;
        for (const auto read : reads_[m]) bytes = plus(bytes, take(stamp, held_[read]));
        if (bytes > size_[m]) {
            pool_.resize(static_cast<std::size_t>(begin));
            if (first == nothing) return choose(m, bytes);
            held_[m] = held_[first];  // larger sums that it waits for have the same part in them
            return true;
        }
        if (bytes < size_[m]) {
            if (bytes == 0)
                pool_.push_back(parts_.add(graph_.npu[node_[m]], size_[m]));
            else
                add_own(stamp, graph_.npu[node_[m]], size_[m] - bytes);
        }
        held_[m] = {begin, pooled()};
        return true;
    }

    std::int64_t bytes_of(Held held) const {
        std::int64_t bytes = 0;
        for (auto k = held.begin; k < held.end; ++k) bytes = plus(bytes, parts_.bytes(pool_[k]));
        return bytes;
    }

    // Of several that a COMM_SEND waits for it passes on the only one of its size that did not
    // come from where it goes.
    bool choose(std::int64_t m, std::int64_t bytes) {
        Held chosen;
        for (const auto read : reads_[m]) {
            const Held held = held_[read];
            if (bytes_of(held) != size_[m] || chosen == held) continue;
            if (is_message(read) && graph_.npu[node_[read]] == place(m)) continue;
            if (!chosen.empty()) return fail(Fault::mixed_source, node_[m], bytes);
            chosen = held;
        }
        if (chosen.empty()) return fail(Fault::mixed_source, node_[m], bytes);
        held_[m] = chosen;
        return true;
    }

    void finish() {
        std::vector<std::int32_t> number(parts_.size(), -1);
        const auto numbered = [&](std::int32_t part) {
            part = parts_.find(part);
            if (number[part] < 0) {
                number[part] = static_cast<std::int32_t>(flow_.part_npu.size());
                flow_.part_npu.push_back(parts_.npu(part));
                flow_.part_bytes.push_back(parts_.bytes(part));
            }
            return number[part];
        };
        for (std::int64_t m = 0; m < graph_.messages(); ++m) {
            const auto first = flow_.parts.size();
            for (auto k = held_[m].begin; k < held_[m].end; ++k)
                flow_.parts.push_back(numbered(pool_[k]));
            if (flow_.parts.size() > most_parts) {
                fail(Fault::too_many, node_[m], most_parts);
                return;
            }
            std::sort(flow_.parts.begin() + static_cast<std::ptrdiff_t>(first), flow_.parts.end());
            flow_.offsets.push_back(static_cast<std::int64_t>(flow_.parts.size()));
        }
        flow_.node_part.assign(static_cast<std::size_t>(graph_.nodes()), -1);
        for (auto v = graph_.messages(); v < values(); ++v)
            if (held_[v].end - held_[v].begin == 1)
                flow_.node_part[node_[v]] = numbered(pool_[held_[v].begin]);
        flow_.complete.resize(static_cast<std::size_t>(graph_.messages()));
        for (std::int64_t m = 0; m < graph_.messages(); ++m) flow_.complete[m] = !open_[m];
        contributors_.resize(static_cast<std::size_t>(graph_.messages()) * words_);
        flow_.contributors = std::move(contributors_);
    }

    const Graph& graph_;
    std::span<const std::int32_t> rank_;
    std::int32_t ranks_;
    Direction direction_;
    std::size_t words_;
    std::vector<std::int64_t> node_, value_of_, order_, size_;
    Grouped<std::int64_t> reads_, readers_;  // of each value: those it is made of; made of it
    std::vector<std::uint64_t> contributors_;
    std::vector<bool> joins_, open_;
    Parts parts_;
    std::vector<std::int32_t> pool_;
    std::vector<std::int64_t> taken_;
    std::int64_t stamp_ = 0;
    std::vector<Held> held_;
    Flow flow_;
};

}  // namespace

Flow follow(const Graph& graph, const Levels& levels, std::span<const std::int32_t> rank,
            std::int32_t ranks, Direction direction, bool find_parts) {
    return Follower(graph, levels, rank, ranks, direction).run(find_parts);
}

}  // namespace weft::trace
