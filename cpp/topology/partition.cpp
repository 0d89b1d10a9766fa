#include "topology/partition.h"

#include <algorithm>
#include <numeric>

namespace weft {

namespace {

std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

}  // namespace

Neighbours::Neighbours(const ColouredGraph& graph) : first_(graph.colour.size() + 1) {
    const auto links = graph.src.size();
    for (std::size_t i = 0; i < links; ++i) {
        ++first_[graph.src[i] + 1];
        ++first_[graph.dst[i] + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    auto next = first_;
    links_.resize(2 * links);
    for (std::size_t i = 0; i < links; ++i) {
        const auto kind = static_cast<std::uint64_t>(graph.kind[i]);
        links_[next[graph.src[i]]++] = {graph.dst[i], mixed(2 * kind)};
        links_[next[graph.dst[i]]++] = {graph.src[i], mixed(2 * kind + 1)};
    }
}

Partition::Partition(const Neighbours& neighbours, std::span<const std::int32_t> colour)
    : neighbours_(neighbours), order_(colour.size()), place_(colour.size()), cell_(colour.size()),
      size_(colour.size()), key_(colour.size()), touched_(colour.size()), queued_(colour.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::stable_sort(order_, {}, [&](std::int32_t node) { return colour[node]; });
    std::int32_t start = 0;
    for (std::int32_t i = 0; i < neighbours.nodes(); ++i) {
        if (colour[order_[i]] != colour[order_[start]]) start = i;
        place_[order_[i]] = i;
        cell_[order_[i]] = start;
        if (++size_[start] == 1) enqueue(start);
    }
}

void Partition::note(std::uint64_t what) { trace_ = mixed(trace_ ^ what); }

void Partition::enqueue(std::int32_t start) {
    if (queued_[start]) return;
    queued_[start] = 1;
    queue_.push_back(start);
}

std::int32_t Partition::first_open(std::int32_t start) const {
    const auto nodes = static_cast<std::int32_t>(order_.size());
    while (start < nodes && size_[start] == 1) ++start;
    return start;
}

void Partition::single_out(std::int32_t node) {
    const auto start = cell_[node], from = place_[node];
    std::swap(order_[start], order_[from]);
    place_[order_[from]] = from;
    place_[node] = start;
    const auto rest = size_[start] - 1;
    if (rest > 0) {
        size_[start] = 1;
        size_[start + 1] = rest;
        for (std::int32_t i = 0; i < rest; ++i) cell_[order_[start + 1 + i]] = start + 1;
        work_ += rest;
    }
    note(static_cast<std::uint64_t>(start));
    enqueue(start);
    refine();
}

void Partition::refine() {
    for (std::size_t next = 0; next < queue_.size(); ++next) {
        const auto start = queue_[next];
        queued_[start] = 0;
        split_by(start);
    }
    queue_.clear();
}

// Splits cells by how they are linked to the nodes of one.
void Partition::split_by(std::int32_t start) {
    std::uint64_t seen = 0;
    for (const auto node : cell(start)) {
        const auto links = neighbours_[node];
        work_ += static_cast<std::int64_t>(links.size());
        for (const auto& [other, mark] : links) {
            if (key_[other] == 0) {
                auto& touched = touched_[cell_[other]];
                if (touched.empty()) cells_.push_back(cell_[other]);
                touched.push_back(other);
            }
            key_[other] += mark;
            seen += mark * mixed(static_cast<std::uint64_t>(cell_[other]));
        }
    }
    note(seen);
    std::ranges::sort(cells_);
    for (const auto touched : cells_) split(touched);
    cells_.clear();
}

// Splits a cell by keys: those without one first, then in ascending order of keys.
void Partition::split(std::int32_t start) {
    auto& touched = touched_[start];
    const auto size = size_[start];
    const auto without = size - static_cast<std::int32_t>(touched.size());
    std::ranges::sort(touched, {}, [&](std::int32_t node) { return key_[node]; });
    const bool even = key_[touched.front()] == key_[touched.back()];
    if (without == 0 && even) {
        note(key_[touched.front()]);
    } else {
        // To the end of the cell, in order; who was there takes the places that become free.
        for (auto i = static_cast<std::int32_t>(touched.size()); i-- > 0;) {
            const auto node = touched[i], to = start + without + i, from = place_[node];
            const auto other = order_[to];
            order_[to] = node;
            order_[from] = other;
            place_[other] = from;
            place_[node] = to;
        }
        std::int32_t largest = start, first = start;
        std::vector<std::int32_t> parts;
        if (without > 0) parts.push_back(start);
        for (std::size_t i = 0; i < touched.size(); ++i) {
            const auto at = start + without + static_cast<std::int32_t>(i);
            if (i == 0 || key_[touched[i]] != key_[touched[i - 1]]) {
                parts.push_back(at);
                first = at;
                note(key_[touched[i]] ^ static_cast<std::uint64_t>(at));
            }
            cell_[touched[i]] = first;
        }
        for (std::size_t p = 0; p < parts.size(); ++p) {
            const auto end = p + 1 < parts.size() ? parts[p + 1] : start + size;
            size_[parts[p]] = end - parts[p];
            if (size_[parts[p]] > size_[largest] || p == 0) largest = parts[p];
        }
        const bool waits = queued_[start] != 0;
        for (const auto part : parts)
            if (waits || part != largest) enqueue(part);
    }
    for (const auto node : touched) key_[node] = 0;
    work_ += static_cast<std::int64_t>(touched.size());
    touched.clear();
}

}  // namespace weft
