// Nodes in cells of those that look alike so far, refined until cells see each other evenly.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topology/automorphisms.h"

namespace weft {

// Who is linked to whom, both directions, each link with a hash of its kind and direction.
class Neighbours {
  public:
    struct Link {
        std::int32_t node;
        std::uint64_t mark;
    };

    explicit Neighbours(const ColouredGraph& graph);

    std::int32_t nodes() const { return static_cast<std::int32_t>(first_.size()) - 1; }
    std::span<const Link> operator[](std::int32_t node) const {
        return {links_.data() + first_[node], links_.data() + first_[node + 1]};
    }

  private:
    std::vector<std::int64_t> first_;
    std::vector<Link> links_;
};

// Cells are named by the place of their first node. What is done, and in which order, depends on
// nothing but the structure: the same steps in an image of the graph give the image of the cells.
class Partition {
  public:
    Partition(const Neighbours& neighbours, std::span<const std::int32_t> colour);

    // Splits cells until each sees every other evenly.
    void refine();
    // Makes a node a cell of its own, and refines.
    void single_out(std::int32_t node);

    std::span<const std::int32_t> cell(std::int32_t start) const {
        return {order_.data() + start, static_cast<std::size_t>(size_[start])};
    }
    std::int32_t cell_of(std::int32_t node) const { return cell_[node]; }
    // The first cell from `start` on with several nodes; the number of nodes if there is none.
    std::int32_t first_open(std::int32_t start) const;
    const std::vector<std::int32_t>& order() const { return order_; }
    std::uint64_t trace() const { return trace_; }  // a hash of all that was done
    std::int64_t work() const { return work_; }

  private:
    void split_by(std::int32_t start);
    void split(std::int32_t start);
    void enqueue(std::int32_t start);
    void note(std::uint64_t what);

    const Neighbours& neighbours_;
    std::vector<std::int32_t> order_, place_, cell_, size_;  // size by first place of a cell
    std::vector<std::uint64_t> key_;                         // of nodes, for the present splitter
    std::vector<std::vector<std::int32_t>> touched_;         // nodes with keys, by cell
    std::vector<std::int32_t> cells_, queue_;
    std::vector<std::uint8_t> queued_;
    std::uint64_t trace_ = 0;
    std::int64_t work_ = 0;
};

}  // namespace weft
