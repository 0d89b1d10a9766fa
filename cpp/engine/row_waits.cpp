#include "engine/row_waits.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/flat_index.h"

namespace weft {
namespace {

constexpr std::int32_t nobody = -1;

// Nodes that somebody will wait for together: one that stands for the older ones, and newer rows as
// a list through `before`.
struct Group {
    std::int32_t base = nobody;
    std::int32_t newest = nobody;

    bool empty() const { return base == nobody && newest == nobody; }
};

// What is known of a place on an NPU.
struct Cell {
    std::int32_t written = nobody;  // by the last row that replaced what was there
    Group value;                    // that row, and all that was added since
    Group readers;                  // since then
};

// Cells by NPU and place; a table where most NPUs get most chunks and no row names a place. What
// `at` gives is good until it is asked again.
class Cells {
  public:
    explicit Cells(const LogicView& table) : chunks_(table.chunks()) {
        const auto all = static_cast<std::size_t>(table.npus) * chunks_;
        dense_ = table.src_place.empty() && table.dst_place.empty() && all <= 8 * table.size();
        if (dense_) cells_.resize(all);
    }
    Cell& at(std::int32_t npu, std::int32_t place) {
        if (dense_)
            return cells_[static_cast<std::size_t>(npu) * chunks_ +
                          static_cast<std::size_t>(place)];
        const auto key = static_cast<std::uint64_t>(npu) << 32 | static_cast<std::uint32_t>(place);
        const auto number = static_cast<std::size_t>(index_.of(key));
        if (number == cells_.size()) cells_.emplace_back();
        return cells_[number];
    }

  private:
    std::size_t chunks_;
    bool dense_;
    std::vector<Cell> cells_;
    FlatIndex index_;
};

class Finder {
  public:
    Finder(const LogicView& table, std::span<const ps> end)
        : table_(table), end_(end), cells_(table), before_writing_(table.size(), nobody),
          before_reading_(table.size(), nobody) {}

    RowWaits find() && {
        const auto rows = static_cast<std::int32_t>(table_.size());
        next_join_ = rows;
        found_.offsets.reserve(table_.size() + 1);
        for (std::int32_t row = 0; row < rows; ++row) {
            waits_.clear();
            wait_for_memory(row);
            note_read(row);
            note_write(row);
            if (!table_.dep_offsets.empty())
                for (auto k = table_.dep_offsets[row]; k < table_.dep_offsets[row + 1]; ++k)
                    waits_.push_back(static_cast<std::int32_t>(table_.deps[k]));
            std::sort(waits_.begin(), waits_.end());
            waits_.erase(std::unique(waits_.begin(), waits_.end()), waits_.end());
            found_.items.insert(found_.items.end(), waits_.begin(), waits_.end());
            found_.close();
        }
        const auto shift = found_.offsets.back();
        for (std::size_t j = 1; j < joins_.offsets.size(); ++j)
            found_.offsets.push_back(shift + joins_.offsets[j]);
        found_.items.insert(found_.items.end(), joins_.items.begin(), joins_.items.end());
        return {std::move(found_), rows};
    }

  private:
    // All waits come before what is noted: a row that writes where it reads must not wait for
    // itself.
    void wait_for_memory(std::int32_t row) {
        if (table_.is_chained(row))
            waits_.push_back(row - 1);
        else
            wait_for(cells_.at(table_.src[row], table_.reads(row)).value, before_writing_);
        if (to_a_relay(row) || !overwritten(row, table_.writes(row))) return;
        Cell& target = cells_.at(table_.dst[row], table_.writes(row));
        wait_for(target.readers, before_reading_);
        if (!table_.reduce[row])
            wait_for(target.value, before_writing_);
        else if (target.written != nobody)
            waits_.push_back(target.written);
    }

    bool to_a_relay(std::int32_t row) const {
        return table_.is_chained(static_cast<std::size_t>(row) + 1);
    }

    void note_read(std::int32_t row) {
        if (table_.is_chained(row) || !overwritten(row, table_.reads(row))) return;
        Cell& cell = cells_.at(table_.src[row], table_.reads(row));
        before_reading_[row] = cell.readers.newest;
        cell.readers.newest = row;
    }

    void note_write(std::int32_t row) {
        if (to_a_relay(row)) return;
        Cell& cell = cells_.at(table_.dst[row], table_.writes(row));
        if (table_.reduce[row]) {
            before_writing_[row] = cell.value.newest;
            cell.value.newest = row;
        } else if (cell.written == nobody || overwritten(row, table_.writes(row)) ||
                   is_earlier(row, cell.written)) {
            cell = {row, {row, nobody}, {}};
        }
    }

    // Whether a place ever holds anything but one value: home places of chunks that are copied do
    // not.
    bool overwritten(std::int32_t row, std::int32_t place) const {
        return place != table_.chunk[row] || table_.summed[table_.chunk[row]];
    }

    bool is_earlier(std::int32_t row, std::int32_t than) const {
        return !end_.empty() && end_[row] < end_[than];
    }

    // Adds what stands for a group to the waits at hand; several rows become a join.
    void wait_for(Group& group, const std::vector<std::int32_t>& before) {
        if (group.empty()) return;
        if (group.newest != nobody) {
            const bool alone = group.base == nobody && before[group.newest] == nobody;
            group.base = alone ? group.newest : join(group, before);
            group.newest = nobody;
        }
        waits_.push_back(group.base);
    }

    std::int32_t join(const Group& group, const std::vector<std::int32_t>& before) {
        if (group.base != nobody) joins_.items.push_back(group.base);
        for (auto row = group.newest; row != nobody; row = before[row]) joins_.items.push_back(row);
        joins_.close();
        return next_join_++;
    }

    const LogicView& table_;
    std::span<const ps> end_;
    Cells cells_;
    std::vector<std::int32_t> before_writing_, before_reading_;  // links of the lists of groups
    std::vector<std::int32_t> waits_;                            // of the row at hand
    Rows found_, joins_;
    std::int32_t next_join_ = 0;
};

}  // namespace

RowWaits find_waits(const LogicView& table, std::span<const ps> end) {
    return Finder(table, end).find();
}

}  // namespace weft
