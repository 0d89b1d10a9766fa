// What can be said about one rank's nodes without looking at the other ranks.
#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>

#include "chakra_read.h"

namespace weft::chakra {
namespace {

std::string node_name(std::uint64_t id) { return "node " + std::to_string(id); }

// Where each id is in the file: at its own number in most traces, else found by bisection.
class Index {
public:
    explicit Index(const Nodes& nodes) : nodes_(nodes) {
        const auto& id = nodes.id;
        dense_ = true;
        for (std::size_t i = 0; i < id.size() && dense_; ++i) dense_ = id[i] == i;
        if (dense_) return;
        order_.resize(id.size());
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        const auto by_id = [&](std::size_t a, std::size_t b) { return id[a] < id[b]; };
        if (!std::is_sorted(id.begin(), id.end())) std::sort(order_.begin(), order_.end(), by_id);
        for (std::size_t i = 1; i < id.size(); ++i)
            if (id[order_[i]] == id[order_[i - 1]])
                throw std::invalid_argument(node_name(id[order_[i]]) + " is there twice");
    }

    std::size_t operator[](std::uint64_t id) const {
        if (dense_) return id < nodes_.size() ? id : missing;
        const auto at = std::lower_bound(order_.begin(), order_.end(), id,
            [&](std::size_t a, std::uint64_t wanted) { return nodes_.id[a] < wanted; });
        return at != order_.end() && nodes_.id[*at] == id ? *at : missing;
    }

    static constexpr std::size_t missing = static_cast<std::size_t>(-1);

private:
    const Nodes& nodes_;
    bool dense_;
    std::vector<std::size_t> order_;
};

template <class Visit>
void each_wait(const Nodes& nodes, std::size_t node, Visit visit) {
    for (const Waits* waits : {&nodes.ctrl, &nodes.data})
        for (auto k = waits->offsets[node]; k < waits->offsets[node + 1]; ++k)
            visit(waits->ids[static_cast<std::size_t>(k)]);
}

// Nodes that wait for each node, as positions in the file.
struct Waiting {
    std::vector<std::size_t> offsets, nodes;
};

Waiting turn_round(const Nodes& nodes, const Index& index) {
    Waiting waiting;
    waiting.offsets.assign(nodes.size() + 1, 0);
    for (std::size_t i = 0; i < nodes.size(); ++i)
        each_wait(nodes, i, [&](std::uint64_t id) {
            const std::size_t at = index[id];
            if (at == Index::missing)
                throw std::invalid_argument(node_name(nodes.id[i]) + " waits for " +
                                            node_name(id) + ", which is not there");
            ++waiting.offsets[at + 1];
        });
    std::partial_sum(waiting.offsets.begin(), waiting.offsets.end(), waiting.offsets.begin());
    waiting.nodes.resize(waiting.offsets.back());
    std::vector<std::size_t> next(waiting.offsets.begin(), waiting.offsets.end() - 1);
    for (std::size_t i = 0; i < nodes.size(); ++i)
        each_wait(nodes, i, [&](std::uint64_t id) { waiting.nodes[next[index[id]]++] = i; });
    return waiting;
}

// Some node that is left waits for another that is left: going back must come round to a circle.
std::size_t node_on_circle(const Nodes& nodes, const Index& index,
                           const std::vector<std::size_t>& left) {
    std::size_t node = 0;
    while (left[node] == 0) ++node;
    std::vector<bool> seen(nodes.size());
    while (!seen[node]) {
        seen[node] = true;
        std::size_t before = node;
        each_wait(nodes, node, [&](std::uint64_t id) {
            if (left[index[id]] > 0) before = index[id];
        });
        node = before;
    }
    return node;
}

void check_acyclic(const Nodes& nodes, const Index& index, const Waiting& waiting) {
    std::vector<std::size_t> left(nodes.size(), 0), ready;
    for (const std::size_t node : waiting.nodes) ++left[node];
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (left[i] == 0) ready.push_back(i);
    for (std::size_t done = 0; done < ready.size(); ++done) {
        const std::size_t node = ready[done];
        for (auto k = waiting.offsets[node]; k < waiting.offsets[node + 1]; ++k)
            if (--left[waiting.nodes[k]] == 0) ready.push_back(waiting.nodes[k]);
    }
    if (ready.size() < nodes.size())
        throw std::invalid_argument(node_name(nodes.id[node_on_circle(nodes, index, left)]) +
                                    " can never run: dependencies form a cycle");
}

// Mixes one number after the other into a sum that depends on their order.
class Digest {
public:
    void add(std::uint64_t value) {
        state_ = std::rotl(state_, 23) ^ value;
        state_ *= 0x9e3779b97f4a7c15u;
        state_ ^= state_ >> 32;
    }
    std::uint64_t value() const { return state_; }

private:
    std::uint64_t state_ = 0;
};

bool same_waits(const Waits& a, std::size_t i, const Waits& b, std::size_t j) {
    return std::equal(a.ids.begin() + a.offsets[i], a.ids.begin() + a.offsets[i + 1],
                      b.ids.begin() + b.offsets[j], b.ids.begin() + b.offsets[j + 1]);
}

}  // namespace

void check_nodes(const Nodes& nodes) {
    const Index index(nodes);
    check_acyclic(nodes, index, turn_round(nodes, index));
}

std::uint64_t digest(const Nodes& nodes) {
    const Index index(nodes);
    Digest sum;
    for (std::size_t j = 0; j < nodes.size(); ++j) {
        const std::size_t i = index[j];
        if (i == Index::missing) throw std::invalid_argument(node_name(j) + " is missing");
        sum.add(static_cast<std::uint64_t>(nodes.type[i]));
        for (const Waits* waits : {&nodes.data, &nodes.ctrl}) {
            sum.add(static_cast<std::uint64_t>(waits->offsets[i + 1] - waits->offsets[i]));
            for (auto k = waits->offsets[i]; k < waits->offsets[i + 1]; ++k)
                sum.add(waits->ids[static_cast<std::size_t>(k)]);
        }
    }
    return sum.value();
}

std::string first_difference(const Nodes& found, const Nodes& expected) {
    const Index index(found);
    for (std::size_t j = 0; j < expected.size(); ++j) {
        const std::size_t i = index[j];
        if (i == Index::missing) return node_name(j) + " is missing";
        if (found.type[i] != expected.type[j])
            return node_name(j) + " is of type " + std::to_string(found.type[i]) + ", not " +
                   std::to_string(expected.type[j]);
        if (!same_waits(found.data, i, expected.data, j))
            return node_name(j) + " has other data dependencies than its transfer";
        if (!same_waits(found.ctrl, i, expected.ctrl, j))
            return node_name(j) + " has other control dependencies than its transfer";
    }
    for (const std::uint64_t id : found.id)
        if (id >= expected.size()) return node_name(id) + " belongs to no transfer";
    return {};
}

}  // namespace weft::chakra
