#include "traces/chakra_plan.h"

#include <algorithm>

namespace weft::chakra {

namespace {
constexpr std::int32_t nobody = -1;
}

class Plan::Rank {
  public:
    Rank(Plan& plan, std::int32_t npu)
        : plan_(plan), table_(plan.table_), pace_(plan.pace_), npu_(npu), rows_(plan.rows_[npu]) {}

    Nodes make() && {
        if (rows_.empty()) {  // readers refuse a trace without nodes
            add(comp);
            nodes_.close();
        }
        if (!pace_.gate.empty()) find_sources();
        for (const std::int32_t row : rows_) {
            if (is_local(row))
                add_local(row);
            else if (is_sent(row))
                add_send(row);
            else
                add_receive(row);
            if (table_.has_deps()) last_node_.push_back(newest());
        }
        plan_.forget(npu_);
        return std::move(nodes_);
    }

  private:
    bool is_local(std::int32_t row) const { return table_.src[row] == table_.dst[row]; }
    bool is_sent(std::int32_t row) const { return table_.src[row] == npu_ && !is_local(row); }
    bool gated(std::int64_t row) const { return !pace_.gate.empty() && pace_.gate[row]; }
    bool delayed(std::int64_t row) const { return !pace_.delay.empty() && pace_.delay[row] > 0; }
    std::int32_t newest() const { return static_cast<std::int32_t>(nodes_.size()) - 1; }
    std::size_t position(std::int64_t row) const {
        return static_cast<std::size_t>(std::lower_bound(rows_.begin(), rows_.end(), row) -
                                        rows_.begin());
    }

    // A gate may wait for what a later row of the table sends, so this comes before the nodes.
    void find_sources() {
        std::int32_t next = 0;
        for (const std::int32_t row : rows_) {
            first_node_.push_back(next);
            source_.push_back(is_sent(row) ? plan_.writer(table_.reads(row)) : nobody);
            next += node_count(row);
            if (!is_sent(row)) plan_.writer(table_.writes(row)) = next - 1;
        }
        plan_.forget(npu_);
    }

    std::int32_t node_count(std::int32_t row) const {
        if (is_local(row)) return 1;
        return is_sent(row) ? 1 + gated(row) : 1 + delayed(row) + (table_.reduce[row] ? 1 : 0);
    }

    void add_local(std::int32_t row) {
        const std::int32_t from = table_.reads(row), to = table_.writes(row);
        add(comp);
        nodes_.set(comm_tag, row);
        wait_for_writer(from);
        if (table_.reduce[row] && to != from) wait_for_writer(to);
        wait_for_readers(to);
        wait_for_rows(row);
        nodes_.close();
        note_reader(from);
        note_writer(to);
    }

    void add_send(std::int32_t row) {
        if (gated(row)) add_gate(row);
        const std::int32_t opened = newest();
        add(comm_send);
        nodes_.set(comm_dst, table_.dst[row]);
        set_message(row);
        wait_for_writer(table_.reads(row));
        if (gated(row))
            hold(opened);
        else
            wait_for_rows(row);
        nodes_.close();
        note_reader(table_.reads(row));
    }

    // Nothing but control: data dependencies are the same with gates and without.
    void add_gate(std::int32_t row) {
        add(comp);
        hold(plan_.writer(table_.reads(row)));
        wait_for_rows(row);
        wait_for_turn(row);
        nodes_.close();
    }

    void add_receive(std::int32_t row) {
        add(comm_recv);
        nodes_.set(comm_src, table_.src[row]);
        set_message(row);
        const std::int32_t to = table_.writes(row);
        if (!table_.reduce[row]) wait_for_readers(to);
        wait_for_rows(row);
        nodes_.close();
        if (delayed(row)) {
            add_after_newest();
            nodes_.duration.back() = static_cast<std::uint64_t>(pace_.delay[row]);
            nodes_.close();
        }
        if (table_.reduce[row]) {
            add_after_newest();
            wait_for_writer(to);
            wait_for_readers(to);
            nodes_.close();
        }
        note_writer(to);
    }

    void add(NodeType type) { nodes_.add(nodes_.size(), type); }
    void add_after_newest() {
        add(comp);
        wait(newest() - 1);
    }

    void set_message(std::int32_t row) {
        nodes_.set(comm_size, plan_.chunk_bytes_[table_.chunk[row]]);
        nodes_.set(comm_tag, row);
        if (pace_.piece_count.empty()) return;
        nodes_.set(msg_chunk_cnt, pace_.piece_count[row]);
        nodes_.set(msg_chunk_idx, pace_.piece_index[row]);
        nodes_.set(total_chunk_cnt, pace_.pieces);
    }

    void wait(std::int32_t node) {
        if (node != nobody) nodes_.data.items.push_back(static_cast<std::uint64_t>(node));
    }
    void hold(std::int32_t node) {
        auto& ids = nodes_.ctrl.items;
        const auto id = static_cast<std::uint64_t>(node);
        const auto first = ids.begin() + nodes_.ctrl.offsets.back();
        if (node != nobody && std::find(first, ids.end(), id) == ids.end()) ids.push_back(id);
    }

    void wait_for_writer(std::int32_t place) { wait(plan_.writer(place)); }
    // What is overwritten must have been read.
    void wait_for_readers(std::int32_t place) {
        if (const auto found = plan_.readers_.find(place); found != plan_.readers_.end())
            for (const std::int32_t node : found->second) hold(node);
    }
    void note_reader(std::int32_t place) {
        if (plan_.keeps_readers_) plan_.readers_[place].push_back(newest());
    }
    void note_writer(std::int32_t place) {
        plan_.writer(place) = newest();
        plan_.readers_.erase(place);
    }

    // Rows that end on this rank can be waited for here; others are only kept in the metadata.
    void wait_for_rows(std::int32_t row) {
        if (!table_.has_deps()) return;
        for (auto k = table_.dep_offsets[row]; k < table_.dep_offsets[row + 1]; ++k)
            if (const std::int64_t dep = table_.deps[k]; table_.dst[dep] == npu_)
                hold(last_node_[position(dep)]);
    }

    // The row before this one on the link starts when its own gate opens or its data has come.
    void wait_for_turn(std::int32_t row) {
        const std::int32_t before = pace_.after.empty() ? nobody : pace_.after[row];
        if (before == nobody) return;
        const std::size_t at = position(before);
        hold(gated(before) ? first_node_[at] : source_[at]);
    }

    Plan& plan_;
    const Transfers& table_;
    const Pace& pace_;
    std::int32_t npu_;
    std::span<const std::int32_t> rows_;
    std::vector<std::int32_t> last_node_;  // of each of the rows so far, on this rank
    // Of each row, where some wait for their turn: its first node, and the node that brings what
    // it sends.
    std::vector<std::int32_t> first_node_, source_;
    Nodes nodes_;
};

Plan::Plan(const Transfers& transfers, std::span<const std::int64_t> chunk_bytes, std::int32_t npus,
           Pace pace)
    : table_(transfers), chunk_bytes_(chunk_bytes), pace_(pace),
      home_writer_(chunk_bytes.size(), nobody), keeps_readers_(transfers.has_deps()) {
    rows_ = grouped<std::int32_t>(static_cast<std::size_t>(npus), [&](const auto& add) {
        for (std::size_t row = 0; row < table_.size(); ++row) {
            const bool local = table_.src[row] == table_.dst[row];
            keeps_readers_ |= local;
            add(table_.src[row], row);
            if (!local) add(table_.dst[row], row);
        }
    });
}

std::vector<std::int64_t> Plan::sent(std::int32_t npu) const {
    std::vector<std::int64_t> found;
    for (const std::int32_t row : rows_[npu])
        if (table_.src[row] == npu) found.push_back(row);
    return found;
}

Nodes Plan::nodes(std::int32_t npu) { return Rank(*this, npu).make(); }

std::int32_t& Plan::writer(std::int32_t place) {
    if (static_cast<std::size_t>(place) < home_writer_.size()) return home_writer_[place];
    return other_writer_.try_emplace(place, nobody).first->second;
}

void Plan::forget(std::int32_t npu) {
    for (const std::int32_t row : rows_[npu])
        if (table_.dst[row] == npu) writer(table_.writes(row)) = nobody;
    other_writer_.clear();
    readers_.clear();
}

}  // namespace weft::chakra
