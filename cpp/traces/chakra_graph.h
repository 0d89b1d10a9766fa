// The graph that one rank's nodes form: ids found, dependencies turned round.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
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
        for (const std::uint64_t id : (*waits)[node]) visit(id);
}

// Of each node those that wait for it, as positions in the file.
using Waiting = Grouped<std::size_t>;

// Throws std::invalid_argument naming the node: an id used twice, a dependency on a node that is
// not there, or a circle of dependencies. Linear in nodes and dependencies.
Waiting check_nodes(const Nodes& nodes);

}  // namespace weft::chakra
