#include "traces/chakra_plan.h"

#include <algorithm>
#include <numeric>

namespace weft::chakra {

namespace {
constexpr std::int32_t nobody = -1;
}

struct Plan::Rank {
    std::int32_t npu;
    std::span<const std::int32_t> rows;
    std::vector<std::int32_t> last_node = {};  // of each of the rows so far, on this rank
    // Of each row, where some wait for their turn: its first node, and the node that brings what
    // it sends.
    std::vector<std::int32_t> first_node = {}, source = {};
    Nodes nodes = {};

    std::int32_t newest() const { return static_cast<std::int32_t>(nodes.size()) - 1; }

    void add(NodeType type) { nodes.add(nodes.size(), type); }
    void wait(std::int32_t node) { nodes.data.ids.push_back(static_cast<std::uint64_t>(node)); }
    void hold(std::int32_t node) {
        const auto id = static_cast<std::uint64_t>(node);
        const auto first = nodes.ctrl.ids.begin() + nodes.ctrl.offsets.back();
        if (std::find(first, nodes.ctrl.ids.end(), id) == nodes.ctrl.ids.end())
            nodes.ctrl.ids.push_back(id);
    }
    void close() {
        nodes.ctrl.close();
        nodes.data.close();
    }

    std::size_t position(std::int64_t row) const {
        const auto at = std::lower_bound(rows.begin(), rows.end(), row);
        return static_cast<std::size_t>(at - rows.begin());
    }
};

Plan::Plan(const Transfers& transfers, std::span<const std::int64_t> chunk_bytes, std::int32_t npus,
           Pace pace)
    : table_(transfers), chunk_bytes_(chunk_bytes), pace_(pace),
      offsets_(static_cast<std::size_t>(npus) + 1, 0), home_writer_(chunk_bytes.size(), nobody) {
    const auto count = static_cast<std::int32_t>(table_.chunk.size());
    for (std::int32_t row = 0; row < count; ++row) {
        ++offsets_[table_.src[row] + 1];
        if (table_.dst[row] != table_.src[row])
            ++offsets_[table_.dst[row] + 1];
        else
            keeps_readers_ = true;
    }
    keeps_readers_ |= table_.has_deps();
    std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
    rows_.resize(static_cast<std::size_t>(offsets_.back()));
    std::vector<std::int64_t> next(offsets_.begin(), offsets_.end() - 1);
    for (std::int32_t row = 0; row < count; ++row) {
        rows_[next[table_.src[row]]++] = row;
        if (table_.dst[row] != table_.src[row]) rows_[next[table_.dst[row]]++] = row;
    }
}

std::span<const std::int32_t> Plan::rows(std::int32_t npu) const {
    return {rows_.data() + offsets_[npu], rows_.data() + offsets_[npu + 1]};
}

std::vector<std::int64_t> Plan::sent(std::int32_t npu) const {
    std::vector<std::int64_t> found;
    for (const std::int32_t row : rows(npu))
        if (table_.src[row] == npu) found.push_back(row);
    return found;
}

Nodes Plan::nodes(std::int32_t npu) {
    Rank rank{npu, rows(npu)};
    if (rank.rows.empty()) {  // readers refuse a trace without nodes
        rank.add(comp);
        rank.close();
    }
    if (!pace_.gate.empty()) find_sources(rank);
    for (const std::int32_t row : rank.rows) add_row(rank, row);
    forget(npu);
    return std::move(rank.nodes);
}

std::int32_t Plan::node_count(std::int32_t npu, std::int32_t row) const {
    if (table_.src[row] == table_.dst[row]) return 1;
    if (table_.src[row] == npu) return gated(row) ? 2 : 1;
    return 1 + (delayed(row) ? 1 : 0) + (table_.reduce[row] ? 1 : 0);
}

// A gate may wait for what a later row of the table sends, so this comes before the nodes.
void Plan::find_sources(Rank& rank) {
    std::int32_t next = 0;
    for (const std::int32_t row : rank.rows) {
        const bool sent = table_.src[row] == rank.npu && table_.dst[row] != rank.npu;
        rank.first_node.push_back(next);
        rank.source.push_back(sent ? writer(table_.reads(row)) : nobody);
        next += node_count(rank.npu, row);
        if (!sent) writer(table_.writes(row)) = next - 1;
    }
    forget(rank.npu);
}

void Plan::add_row(Rank& rank, std::int32_t row) {
    if (table_.src[row] == table_.dst[row])
        add_local(rank, row);
    else if (table_.src[row] == rank.npu)
        add_send(rank, row);
    else
        add_receive(rank, row);
    if (table_.has_deps()) rank.last_node.push_back(rank.newest());
}

void Plan::add_local(Rank& rank, std::int32_t row) {
    const std::int32_t from = table_.reads(row), to = table_.writes(row);
    rank.add(comp);
    rank.nodes.set(comm_tag, row);
    wait_for_writer(rank, from);
    if (table_.reduce[row] && to != from) wait_for_writer(rank, to);
    wait_for_readers(rank, to);
    wait_for_rows(rank, row);
    rank.close();
    note_reader(rank, from);
    note_writer(rank, to);
}

void Plan::add_send(Rank& rank, std::int32_t row) {
    if (gated(row)) add_gate(rank, row);
    const std::int32_t opened = rank.newest();
    rank.add(comm_send);
    rank.nodes.set(comm_dst, table_.dst[row]);
    set_message(rank, row);
    wait_for_writer(rank, table_.reads(row));
    if (gated(row))
        rank.hold(opened);
    else
        wait_for_rows(rank, row);
    rank.close();
    note_reader(rank, table_.reads(row));
}

// Nothing but control: data dependencies are the same with gates and without.
void Plan::add_gate(Rank& rank, std::int32_t row) {
    rank.add(comp);
    if (const std::int32_t node = writer(table_.reads(row)); node != nobody) rank.hold(node);
    wait_for_rows(rank, row);
    wait_for_turn(rank, row);
    rank.close();
}

void Plan::add_receive(Rank& rank, std::int32_t row) {
    rank.add(comm_recv);
    rank.nodes.set(comm_src, table_.src[row]);
    set_message(rank, row);
    const std::int32_t to = table_.writes(row);
    if (!table_.reduce[row]) wait_for_readers(rank, to);
    wait_for_rows(rank, row);
    rank.close();
    if (delayed(row)) {
        const std::int32_t arrived = rank.newest();
        rank.add(comp);
        rank.nodes.duration.back() = static_cast<std::uint64_t>(pace_.delay[row]);
        rank.wait(arrived);
        rank.close();
    }
    if (table_.reduce[row]) {
        const std::int32_t received = rank.newest();
        rank.add(comp);
        rank.wait(received);
        wait_for_writer(rank, to);
        wait_for_readers(rank, to);
        rank.close();
    }
    note_writer(rank, to);
}

void Plan::set_message(Rank& rank, std::int32_t row) const {
    rank.nodes.set(comm_size, chunk_bytes_[table_.chunk[row]]);
    rank.nodes.set(comm_tag, row);
    if (pace_.piece_count.empty()) return;
    rank.nodes.set(msg_chunk_cnt, pace_.piece_count[row]);
    rank.nodes.set(msg_chunk_idx, pace_.piece_index[row]);
    rank.nodes.set(total_chunk_cnt, pace_.pieces);
}

void Plan::wait_for_writer(Rank& rank, std::int32_t place) {
    if (const std::int32_t node = writer(place); node != nobody) rank.wait(node);
}

// What is overwritten must have been read.
void Plan::wait_for_readers(Rank& rank, std::int32_t place) {
    if (const auto found = readers_.find(place); found != readers_.end())
        for (const std::int32_t node : found->second) rank.hold(node);
}

void Plan::note_reader(const Rank& rank, std::int32_t place) {
    if (keeps_readers_) readers_[place].push_back(rank.newest());
}

void Plan::note_writer(const Rank& rank, std::int32_t place) {
    writer(place) = rank.newest();
    readers_.erase(place);
}

// Rows that end on this rank can be waited for here; others are only kept in the metadata.
void Plan::wait_for_rows(Rank& rank, std::int32_t row) {
    if (!table_.has_deps()) return;
    for (auto k = table_.dep_offsets[row]; k < table_.dep_offsets[row + 1]; ++k)
        if (const std::int64_t dep = table_.deps[k]; table_.dst[dep] == rank.npu)
            rank.hold(rank.last_node[rank.position(dep)]);
}

// The row before this one on the link starts when its own gate opens or its data has come.
void Plan::wait_for_turn(Rank& rank, std::int32_t row) {
    const std::int32_t before = pace_.after.empty() ? nobody : pace_.after[row];
    if (before == nobody) return;
    const std::size_t at = rank.position(before);
    const std::int32_t node = gated(before) ? rank.first_node[at] : rank.source[at];
    if (node != nobody) rank.hold(node);
}

std::int32_t& Plan::writer(std::int32_t place) {
    if (static_cast<std::size_t>(place) < home_writer_.size()) return home_writer_[place];
    return other_writer_.try_emplace(place, nobody).first->second;
}

void Plan::forget(std::int32_t npu) {
    for (const std::int32_t row : rows(npu))
        if (table_.dst[row] == npu) writer(table_.writes(row)) = nobody;
    other_writer_.clear();
    readers_.clear();
}

}  // namespace weft::chakra
