// Data flow, chunk by chunk, in time linear in the rows.
//
// Without explicit places a chunk lies in one place an NPU, and chunks do not meet, so each is
// judged alone with a few numbers an NPU. Both layers are judged: by time, and in row order.
#include <numeric>

#include "base/grouping.h"
#include "judge/parts.h"

namespace weft::judge {
namespace {

// Rows of each chunk, in row order.
using ByChunk = Grouped<std::uint32_t>;

class FlowCheck {
  public:
    FlowCheck(const Claim& claim, const ByChunk& by_chunk)
        : claim_(claim), by_chunk_(by_chunk), cells_(claim.npus) {}

    void operator()(std::int64_t begin, std::int64_t end, First& first) {
        for (auto chunk = begin; chunk < end; ++chunk) {
            ++stamp_;
            const auto number = static_cast<std::int32_t>(chunk);
            const auto rows = by_chunk_[chunk];
            if (!claim_.chunks.reduce[chunk])
                check_copies(number, rows, first);
            else if (!is_tree(number, rows))
                follow_sets(claim_, rows, number, number + 1, first);
        }
    }

  private:
    // What an NPU has of the chunk at hand; blank until first looked at under the current stamp.
    struct Cell {
        ps ready = never;
        std::uint32_t stamp = 0;
        std::int32_t count = 0;  // contributions in its value (copies: 1 if it has the chunk)
        bool sent = false;       // its partial has gone into another's
    };

    Cell& cell(std::int32_t npu) {
        Cell& found = cells_[npu];
        if (found.stamp != stamp_) found = {.stamp = stamp_};
        return found;
    }

    // A chunk that is only copied is there from its earliest arrival on. Since hops take time, a
    // send at or after that has a cause that started before it, so no order needs to be found.
    void check_copies(std::int32_t chunk, std::span<const std::uint32_t> rows, First& first) {
        for (auto npu : claim_.chunks.sets[claim_.chunks.pre[chunk]]) cell(npu) = {-1, stamp_, 1};
        if (claim_.timed)
            for (auto row : rows) {
                // A copy onto itself brings nothing (and takes no time: it would be its own cause).
                if (claim_.rows.src[row] == claim_.rows.dst[row]) continue;
                Cell& to = cell(claim_.rows.dst[row]);
                to.ready = std::min(to.ready, claim_.rows.end[row]);
            }
        for (auto row : rows) {
            const Cell& from = cell(claim_.rows.src[row]);
            if (claim_.timed && claim_.rows.start[row] < from.ready)
                first.offer(unheld(row, claim_.rows.start[row], from.ready, false));
            if (from.count == 0) first.offer(unheld_in_row_order(row, rows));
            Cell& to = cell(claim_.rows.dst[row]);
            to.count = 1;
            if (!claim_.timed) to.ready = 0;
        }
        for (auto npu : claim_.chunks.sets[claim_.chunks.post[chunk]])
            if (cell(npu).ready == never)
                return first.offer({.code = Code::never_received,
                                    .in_row_order = !claim_.timed,
                                    .time = never,
                                    .chunk = chunk,
                                    .npu = npu});
    }

    Violation unheld(std::int64_t row, ps time, ps ready, bool in_row_order) const {
        return {.code = ready == never ? Code::never_held : Code::held_late,
                .in_row_order = in_row_order,
                .time = time,
                .row = row,
                .chunk = claim_.rows.chunk[row],
                .npu = claim_.rows.src[row],
                .other = ready};
    }

    Violation unheld_in_row_order(std::uint32_t row, std::span<const std::uint32_t> rows) const {
        for (auto later : rows)
            if (later > row && claim_.rows.dst[later] == claim_.rows.src[row])
                return unheld(row, row, later, true);
        return unheld(row, row, never, true);
    }

    // Whether the chunk's partials visibly flow up a tree: every NPU adds its partial to another's
    // at most once, after all it receives, and only complete values are copied. Then contributions
    // cannot meet twice, counting them is enough, and time and row order give the same values:
    // every read comes after all writes to its place but copies of the complete value, and those
    // come, through the root, after all the place's own reads. False means "not this simple".
    bool is_tree(std::int32_t chunk, std::span<const std::uint32_t> rows) {
        const auto contributors = claim_.chunks.sets[claim_.chunks.pre[chunk]];
        const auto all = static_cast<std::int32_t>(contributors.size());
        for (auto npu : contributors) cell(npu) = {-1, stamp_, 1};
        for (auto row : rows) {
            Cell& from = cell(claim_.rows.src[row]);
            if (claim_.rows.src[row] == claim_.rows.dst[row] || from.count == 0) return false;
            if (claim_.timed && claim_.rows.start[row] < from.ready) return false;
            Cell& to = cell(claim_.rows.dst[row]);
            const ps end = claim_.timed ? claim_.rows.end[row] : 0;
            if (claim_.rows.reduce[row] ? !add(from, to, end, all) : !copy(from, to, end, all))
                return false;
        }
        for (auto npu : claim_.chunks.sets[claim_.chunks.post[chunk]])
            if (cell(npu).count != all || all == 0) return false;
        return true;
    }

    static bool add(Cell& from, Cell& to, ps end, std::int32_t all) {
        if (from.sent || to.sent || from.count == all || from.count + to.count > all) return false;
        from.sent = true;
        to.ready = to.count == 0 ? end : std::max(to.ready, end);
        to.count += from.count;
        return true;
    }

    static bool copy(const Cell& from, Cell& to, ps end, std::int32_t all) {
        if (from.count != all) return false;
        if (to.count == all) {
            to.ready = std::min(to.ready, end);
            return true;
        }
        if (to.count != 0 && !to.sent) return false;
        to.count = all;
        to.ready = end;
        return true;
    }

    const Claim& claim_;
    const ByChunk& by_chunk_;
    std::vector<Cell> cells_;
    std::uint32_t stamp_ = 0;
};

}  // namespace

First check_flow(const Claim& claim) {
    if (claim.has_places()) {
        // Slots may hold one chunk after another: nothing can be judged apart.
        std::vector<std::uint32_t> rows(claim.rows.chunk.size());
        std::iota(rows.begin(), rows.end(), 0u);
        First first;
        follow_sets(claim, rows, 0, claim.chunks.size(), first);
        return first;
    }
    const auto by_chunk = grouped<std::uint32_t>(claim.chunks.size(), [&](const auto& add) {
        for (std::size_t row = 0; row < claim.rows.size(); ++row) add(claim.rows.chunk[row], row);
    });
    const std::int64_t rows_a_chunk = claim.row_count() / std::max(1, claim.chunks.size()) + 1;
    const std::int64_t block = std::max<std::int64_t>(1, (1 << 15) / rows_a_chunk);
    return in_blocks<FlowCheck>(claim.chunks.size(), block,
                                [&] { return FlowCheck(claim, by_chunk); });
}

}  // namespace weft::judge
