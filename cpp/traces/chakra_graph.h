// The graph that one rank's nodes form: ids found, dependencies turned round.
#pragma once

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "traces/chakra.h"

namespace weft::chakra {

inline std::string node_name(std::uint64_t id) { return "node " + std::to_string(id); }

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
        const auto at = std::lower_bound(
            order_.begin(), order_.end(), id,
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

inline Waiting turn_round(const Nodes& nodes, const Index& index) {
    Waiting waiting;
    waiting.offsets.assign(nodes.size() + 1, 0);
    for (std::size_t i = 0; i < nodes.size(); ++i)
        each_wait(nodes, i, [&](std::uint64_t id) {
            const std::size_t at = index[id];
            if (at == Index::missing)
                throw std::invalid_argument(node_name(nodes.id[i]) + " waits for " + node_name(id) +
                                            ", which is not there");
            ++waiting.offsets[at + 1];
        });
    std::partial_sum(waiting.offsets.begin(), waiting.offsets.end(), waiting.offsets.begin());
    waiting.nodes.resize(waiting.offsets.back());
    std::vector<std::size_t> next(waiting.offsets.begin(), waiting.offsets.end() - 1);
    for (std::size_t i = 0; i < nodes.size(); ++i)
        each_wait(nodes, i, [&](std::uint64_t id) { waiting.nodes[next[index[id]]++] = i; });
    return waiting;
}

}  // namespace weft::chakra
