#include "traces/run_graph.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "traces/chakra_graph.h"
#include "traces/chakra_read.h"
#include "traces/id_table.h"

namespace weft {
namespace {

using chakra::Known;
using chakra::Nodes;

constexpr std::int32_t tags = 500'000'000;  // ASTRA-sim takes tags modulo this
constexpr std::int64_t most_bytes = std::int64_t{1} << 60;
constexpr std::uint64_t most_micros = std::uint64_t{1} << 42;  // 50 days: the clock's end

// What is wrong with a node, in pieces: texts and numbers.
[[noreturn]] void refuse(const Nodes& nodes, std::size_t node, const auto&... what) {
    std::ostringstream words;
    (words << chakra::node_name(nodes.id[node]) << " " << ... << what);
    throw std::invalid_argument(words.str());
}

std::int64_t required(const Nodes& nodes, std::size_t node, Known attribute) {
    if (!nodes.has(node, attribute))
        refuse(nodes, node, "has no ", chakra::known_attributes[attribute].name);
    return nodes.known[attribute][node];
}

bool on_cpu(const Nodes& nodes, std::size_t node) {
    return nodes.has(node, chakra::is_cpu_op) && nodes.known[chakra::is_cpu_op][node];
}

RunKind kind_of(const Nodes& nodes, std::size_t node, RunRules rules) {
    constexpr std::int32_t metadata = 1;
    switch (nodes.type[node]) {
        case chakra::comp:
            return on_cpu(nodes, node) ? RunKind::host : RunKind::comp;
        case chakra::comm_send:
            return RunKind::send;
        case chakra::comm_recv:
            return RunKind::recv;
        case chakra::comm_coll:
            if (rules == RunRules::weft) return RunKind::collective;
            refuse(nodes, node,
                   "is a whole collective, and those of ASTRA-sim are not simulated; "
                   "make messages of it with `weft lower` first");
        case metadata:
            if (rules == RunRules::weft) return RunKind::comp;  // that takes no time
            [[fallthrough]];
        default:
            refuse(nodes, node, "is of type ", nodes.type[node],
                   "; expected COMP (4), COMM_SEND (5) or COMM_RECV (6)");
    }
}

// One rank's nodes on their way from columns in the order of the file.
class Packer {
  public:
    Packer(const Nodes& nodes, std::int32_t rank, std::int32_t ranks, RunRules rules)
        : nodes_(nodes), rank_(rank), ranks_(ranks), rules_(rules), place_(nodes.size()) {}

    RankNodes pack(const chakra::Waiting& waiting) && {
        order();
        out_.kind.reserve(place_.size());
        for (const auto node : sorted_) add(node);
        link(waiting);
        if (rules_ == RunRules::custom)
            order_as_astra_sim();
        else
            for (std::uint32_t i = 0; i < place_.size(); ++i)
                if (out_.waits[i] == 0) out_.roots.push_back(i);
        return std::move(out_);
    }

  private:
    void order() {
        sorted_.resize(nodes_.size());
        std::iota(sorted_.begin(), sorted_.end(), 0u);
        const auto& id = nodes_.id;
        if (!std::is_sorted(id.begin(), id.end()))
            std::sort(sorted_.begin(), sorted_.end(),
                      [&](auto a, auto b) { return id[a] < id[b]; });
        for (std::uint32_t i = 0; i < sorted_.size(); ++i) place_[sorted_[i]] = i;
        if (!id.empty() && id[sorted_.back()] != id.size() - 1)
            for (const auto node : sorted_) out_.id.push_back(id[node]);
    }

    void add(std::size_t node) {
        const RunKind kind = kind_of(nodes_, node, rules_);
        out_.kind.push_back(kind);
        if (kind == RunKind::collective) out_.collective = nodes_.id[node];
        if (kind == RunKind::send || kind == RunKind::recv) {
            add_message(node, kind == RunKind::send);
            return;
        }
        const bool timed = nodes_.type[node] == chakra::comp;
        if (timed && nodes_.duration[node] > most_micros)
            refuse(nodes_, node, "takes ", nodes_.duration[node], " us; expected ", most_micros,
                   " at most");
        out_.amount.push_back(timed ? static_cast<std::int64_t>(nodes_.duration[node]) : 0);
        out_.peer.push_back(0);
        out_.tag.push_back(0);
    }

    void add_message(std::size_t node, bool sends) {
        const auto peer = required(nodes_, node, sends ? chakra::comm_dst : chakra::comm_src);
        const auto bytes = required(nodes_, node, chakra::comm_size);
        const auto tag = required(nodes_, node, chakra::comm_tag);
        if (peer < 0 || peer >= ranks_)
            refuse(nodes_, node, "names rank ", peer, ", but ranks are 0 to ", ranks_ - 1);
        if (peer == rank_) refuse(nodes_, node, "is a message from its rank to itself");
        if (bytes < 1 || bytes > most_bytes)
            refuse(nodes_, node, "moves ", bytes, " B; expected 1 to ", most_bytes);
        if (tag < std::numeric_limits<std::int32_t>::min() ||
            tag > std::numeric_limits<std::uint32_t>::max())
            refuse(nodes_, node, "has tag ", tag, "; expected 32 bits");
        const auto tag_taken = static_cast<std::int32_t>(tag) % tags;
        if (tag_taken < 0 && rules_ != RunRules::weft)
            refuse(nodes_, node, "has tag ", tag,
                   ", which is below 0 as one of 32 bits; ASTRA-sim aborts");
        if (rules_ == RunRules::plain) check_plain(node, sends);
        out_.amount.push_back(bytes);
        out_.peer.push_back(static_cast<std::int32_t>(peer));
        out_.tag.push_back(tag_taken < 0 ? static_cast<std::uint32_t>(tag) % tags : tag_taken);
    }

    void check_plain(std::size_t node, bool sends) const {
        const Known own = sends ? chakra::comm_src : chakra::comm_dst;
        if (nodes_.has(node, own) && nodes_.known[own][node] != rank_)
            refuse(nodes_, node, "has ", chakra::known_attributes[own].name, " ",
                   nodes_.known[own][node], " in the trace of rank ", rank_, "; ASTRA-sim aborts");
        if (on_cpu(nodes_, node))
            refuse(nodes_, node, "is a message with is_cpu_op; ASTRA-sim aborts");
    }

    void link(const chakra::Waiting& waiting) {
        out_.waits.assign(place_.size(), 0);
        out_.offsets.assign(1, 0);
        out_.children.reserve(waiting.items.size());
        for (const auto node : sorted_) {
            for (const auto after : waiting[node]) {
                out_.children.push_back(place_[after]);
                ++out_.waits[place_[after]];
            }
            out_.offsets.push_back(static_cast<std::uint32_t>(out_.children.size()));
        }
    }

    // What ASTRA-sim does while it reads a file: a table of the nodes, and of each one's children.
    void order_as_astra_sim() {
        const chakra::Index index(nodes_);
        IdTable all;
        for (std::size_t node = 0; node < nodes_.size(); ++node) {
            IdTable parents;
            for (const auto* waits : {&nodes_.data, &nodes_.ctrl})
                for (const auto id : (*waits)[node]) parents.emplace(id, place_[index[id]]);
            all.emplace(nodes_.id[node], place_[node]);
            for (const auto& parent : parents) all.insert(parent);
        }
        for (const auto& [id, place] : all)
            if (out_.waits[place] == 0) out_.roots.push_back(place);
        std::uint32_t kept = 0, next = 0;
        for (std::size_t parent = 0; parent < place_.size(); ++parent) {
            IdTable children;
            for (; next < out_.offsets[parent + 1]; ++next) {
                const std::uint32_t child = out_.children[next];
                if (!children.emplace(nodes_.id[sorted_[child]], child).second) --out_.waits[child];
            }
            for (const auto& [id, child] : children) out_.children[kept++] = child;
            out_.offsets[parent + 1] = kept;
        }
        out_.children.resize(kept);
    }

    const Nodes& nodes_;
    std::int32_t rank_, ranks_;
    RunRules rules_;
    std::vector<std::uint32_t> sorted_, place_;  // by id: place in the file; and back
    RankNodes out_;
};

// Numbers channels as they come up.
class ChannelNumbers {
  public:
    ChannelNumbers(std::vector<Channel>& channels, std::size_t messages)
        : channels_(channels), slots_(std::bit_ceil(messages * 2 + 1), no_node) {}

    std::uint32_t operator[](const Channel& channel) {
        std::size_t slot = hash(channel);
        for (;; ++slot) {
            auto& number = slots_[slot & (slots_.size() - 1)];
            if (number == no_node) {
                number = static_cast<std::uint32_t>(channels_.size());
                channels_.push_back(channel);
            }
            if (channels_[number] == channel) return number;
        }
    }

  private:
    static std::size_t hash(const Channel& channel) {
        const std::uint64_t ends =
            static_cast<std::uint64_t>(channel.src) << 32 | static_cast<std::uint32_t>(channel.dst);
        std::uint64_t mixed = ends * 0x9e3779b97f4a7c15u;
        mixed ^= (mixed >> 32) ^ channel.tag;
        mixed *= 0xd6e8feb86659fd93u;
        mixed ^= (mixed >> 32) ^ static_cast<std::uint64_t>(channel.bytes);
        mixed *= 0xd6e8feb86659fd93u;
        return mixed ^ mixed >> 32;
    }

    std::vector<Channel>& channels_;
    std::vector<std::uint32_t> slots_;
};

}  // namespace

RankNodes pack_rank(const Nodes& nodes, std::int32_t rank, std::int32_t ranks, RunRules rules) {
    const chakra::Waiting waiting = chakra::check_nodes(nodes);
    if (nodes.size() == 0 && rules != RunRules::weft)
        throw std::invalid_argument(
            "has no node; ASTRA-sim wants one on every rank, such as a COMP");
    if (nodes.size() >= no_node)
        throw std::invalid_argument("has more nodes than a run can number");
    return Packer(nodes, rank, ranks, rules).pack(waiting);
}

RunGraph::RunGraph(std::span<RankNodes*> parts)
    : firsts{0}, ids_(parts.size()), roots_(parts.size()), offsets_{0} {
    const std::size_t messages = reserve(parts);
    ChannelNumbers numbers(channels, messages);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto rank = static_cast<std::int32_t>(i);
        RankNodes part = std::move(*parts[i]);
        for (std::size_t node = 0; node < part.size(); ++node) {
            std::int64_t value = part.amount[node];
            if (part.kind[node] == RunKind::send)
                value = numbers[{value, rank, part.peer[node], part.tag[node]}];
            else if (part.kind[node] == RunKind::recv)
                value = numbers[{value, part.peer[node], rank, part.tag[node]}];
            detail.push_back(value);
        }
        append(rank, std::move(part));
    }
}

// Makes room for all nodes, and gives the number of those that send or receive.
std::size_t RunGraph::reserve(std::span<RankNodes* const> parts) {
    std::size_t nodes = 0, edges = 0, messages = 0;
    for (const RankNodes* part : parts) {
        if (part->collective) throw std::invalid_argument("a whole collective cannot be run");
        nodes += part->size();
        edges += part->children.size();
        for (const RunKind one : part->kind)
            messages += one == RunKind::send || one == RunKind::recv;
    }
    if (std::max(nodes, edges) >= no_node)
        throw std::invalid_argument("the traces have more nodes than a run can number");
    kind.reserve(nodes);
    waits.reserve(nodes);
    detail.reserve(nodes);
    offsets_.reserve(nodes + 1);
    children_.reserve(edges);
    channels.reserve(messages / 2);
    return messages;
}

void RunGraph::append(std::int32_t rank, RankNodes&& part) {
    const std::uint32_t first = firsts.back(), before = offsets_.back();
    kind.insert(kind.end(), part.kind.begin(), part.kind.end());
    waits.insert(waits.end(), part.waits.begin(), part.waits.end());
    for (std::size_t node = 1; node <= part.size(); ++node)
        offsets_.push_back(before + part.offsets[node]);
    for (const auto child : part.children) children_.push_back(first + child);
    ids_[rank] = std::move(part.id);
    for (auto& root : part.roots) root += first;
    roots_[rank] = std::move(part.roots);
    firsts.push_back(first + static_cast<std::uint32_t>(part.size()));
}

std::int32_t RunGraph::rank_of(std::uint32_t node) const {
    const auto after = std::upper_bound(firsts.begin(), firsts.end(), node);
    return static_cast<std::int32_t>(after - firsts.begin()) - 1;
}

std::uint64_t RunGraph::id_on(std::int32_t rank, std::uint32_t node) const {
    const std::uint32_t place = node - firsts[rank];
    return ids_[rank].empty() ? place : ids_[rank][place];
}

std::vector<std::uint64_t> RunGraph::ids() const {
    std::vector<std::uint64_t> all;
    all.reserve(size());
    for (std::int32_t rank = 0; rank < ranks(); ++rank)
        for (auto node = firsts[rank]; node < firsts[rank + 1]; ++node)
            all.push_back(id_on(rank, node));
    return all;
}

std::string RunGraph::name_of(std::uint32_t node) const {
    return "rank " + std::to_string(rank_of(node)) + ": " + chakra::node_name(id_of(node));
}

}  // namespace weft
