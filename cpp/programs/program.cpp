#include "programs/program.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace weft::program {
namespace {

constexpr int place_bits = 29;
constexpr std::int32_t scratch = 3;

// Which actions need a place of their own on the way: what they read is overwritten before they
// write, as when two NPUs exchange chunks in place. Also finds races and reads of empty cells.
class Walk {
  public:
    Walk(const Program& program, Order& order)
        : detour(program.actions(), 0), program_(program), order_(order),
          cells_(program.npu.size()), version_(program.actions(), 0),
          fed_(program.actions(), {-1, -1}), turn_(program.actions(), -1),
          seen_(program.actions(), 0) {
        for (std::size_t c = 0; c < cells_.size(); ++c) cells_[c].full = program.chunk[c] >= 0;
    }

    Fault run() {
        for (const auto event : order_.sequence()) {
            if (event >= 2 * program_.actions()) continue;
            if (event % 2 == 0)
                read(event);
            else
                write(event);
            if (fault_.what != Wrong::nothing) break;
        }
        return fault_;
    }

    std::vector<std::uint8_t> detour;

  private:
    struct Cell {
        bool full = false;
        std::int64_t writer = -1;  // event
        std::int64_t version = 0;
        std::vector<std::int64_t> readers;  // events since
    };

    void read(std::int64_t event) {
        const auto where = program_.src[event / 2];
        Cell& cell = cells_[where];
        if (!cell.full) return fail(Wrong::empty, {event}, where);
        after(cell.writer, event, where);
        cell.readers.push_back(event);
        version_[event / 2] = cell.version;
        fed_[event / 2][0] = cell.writer < 0 ? -1 : cell.writer / 2;
    }

    void write(std::int64_t event) {
        const auto action = event / 2;
        const auto where = program_.dst[action];
        Cell& cell = cells_[where];
        if (program_.reduce[action] && !cell.full) return fail(Wrong::empty, {event}, where);
        after(cell.writer, event, where);
        for (const auto reader : cell.readers)
            if (reader != event - 1) after(reader, event, where);
        if (program_.reduce[action]) fed_[action][1] = cell.writer < 0 ? -1 : cell.writer / 2;
        turn_[action] = turns_++;
        detour[action] = cells_[program_.src[action]].version != version_[action];
        cell.full = true;
        cell.writer = event;
        ++cell.version;
        cell.readers.clear();
    }

    void after(std::int64_t earlier, std::int64_t later, std::int32_t cell) {
        if (earlier < 0 || fault_.what != Wrong::nothing) return;
        if (descends(later / 2, earlier / 2) || order_.before(earlier, later)) return;
        fail(order_.gave_up() ? Wrong::tangled : Wrong::race, {earlier, later}, cell);
    }

    // Whether what an action moves could not exist before another was over: most overwriting is
    // of that kind, and to follow the data, whose order has been checked, is a short way.
    bool descends(std::int64_t action, std::int64_t ancestor) {
        if (turn_[ancestor] < 0) return false;
        ++stamp_;
        stack_.assign(1, fed_[action][0]);
        for (int visits = 0; !stack_.empty() && visits < most_visits; ++visits) {
            const auto at = stack_.back();
            stack_.pop_back();
            if (at == ancestor) return true;
            if (at < 0 || turn_[at] < turn_[ancestor] || seen_[at] == stamp_) continue;
            seen_[at] = stamp_;
            for (const auto source : fed_[at]) stack_.push_back(source);
        }
        return false;
    }

    void fail(Wrong what, std::vector<std::int64_t> events, std::int32_t cell) {
        fault_ = {what, std::move(events), cell};
    }

    const Program& program_;
    Order& order_;
    std::vector<Cell> cells_;
    std::vector<std::int64_t> version_;  // of the cell each action read
    static constexpr int most_visits = 4096;
    std::vector<std::array<std::int64_t, 2>> fed_;  // actions whose results it moves or adds to
    std::vector<std::int64_t> turn_;  // when each wrote, as they are walked; -1: not yet
    std::vector<std::int64_t> seen_, stack_;
    std::int64_t stamp_ = 0, turns_ = 0;
    Fault fault_;
};

// Writes the rows, in the order of the events.
class Weaver {
  public:
    Weaver(const Program& program, const std::vector<std::uint8_t>& detour)
        : program_(program), detour_(detour), cells_(program.npu.size()),
          flying_(program.actions()), first_row_(program.actions(), -1),
          last_row_(program.actions(), -1) {
        const auto npus = program.npu.empty() ? 0 : *std::ranges::max_element(program.npu) + 1;
        free_slot_.assign(npus, 0);
        for (std::size_t c = 0; c < cells_.size(); ++c) {
            const auto place = program.place[c];
            cells_[c].chunk = program.chunk[c];
            cells_[c].place = place;
            auto& free = free_slot_[program.npu[c]];
            if (place >> place_bits == scratch)
                free = std::max(free, (place & ((1 << place_bits) - 1)) + 1);
        }
        find_wishes();
    }

    Linearized run(const std::vector<std::int64_t>& sequence) {
        for (const auto event : sequence) {
            if (event >= 2 * program_.actions()) continue;
            const auto action = event / 2;
            const auto from = program_.src[action];
            if (event % 2 == 0 && detour_[action])
                start_detour(action);
            else if (event % 2 == 1 && detour_[action])
                add_row(action, flying_[action], program_.npu[program_.dst[action]]);
            else if (event % 2 == 1)
                add_row(action, cells_[from], program_.npu[from]);
        }
        show_lost_results();
        return std::move(woven_);
    }

  private:
    struct Cell {
        std::int32_t chunk = -1, place = -1;
        std::int64_t writer = -1;           // row
        std::vector<std::int64_t> readers;  // rows since
    };

    // Links the wishes of each action that waits, so that they are at hand when its row is written.
    void find_wishes() {
        const auto& edges = program_.edges;
        const auto limit = 2 * program_.actions();
        first_wish_.assign(program_.actions(), -1);
        next_wish_.assign(edges.size(), -1);
        for (auto e = static_cast<std::int64_t>(edges.size()) - 1; e >= 0; --e)
            if (program_.wished[e] && edges.from[e] < limit && edges.to[e] < limit)
                next_wish_[e] = std::exchange(first_wish_[edges.to[e] / 2], e);
    }

    // The value leaves its cell before that is overwritten, and waits in a slot of its own.
    void start_detour(std::int64_t action) {
        const auto from = program_.src[action], to = program_.dst[action];
        Cell& held = flying_[action];
        held.place = scratch << place_bits | free_slot_[program_.npu[to]]++;
        put(action, cells_[from], program_.npu[from], held, program_.npu[to], held.place, false);
    }

    // A cell that once held its result keeps that name: what lies there later is no result.
    void add_row(std::int64_t action, Cell& from, std::int32_t src) {
        const auto to = program_.dst[action];
        Cell& cell = cells_[to];
        std::int32_t place = cell.place;
        if (!program_.reduce[action] && program_.result_place[to] >= 0 &&
            program_.result[to] == from.chunk)
            place = program_.result_place[to];
        put(action, from, src, cell, program_.npu[to], place, program_.reduce[action]);
    }

    // In place a cell has two names, and the judge does not know that they are one. Somebody who
    // gives a chunk and takes it may keep it under its first name, if there is nothing under that
    // of its result: so say it, by a last row, if something else lies in either.
    void show_lost_results() {
        std::unordered_map<std::int64_t, std::size_t> first;  // cells by NPU and chunk
        const auto key = [&](std::size_t cell, std::int32_t chunk) {
            return static_cast<std::int64_t>(program_.npu[cell]) << 32 | chunk;
        };
        for (std::size_t c = 0; c < cells_.size(); ++c)
            if (program_.result_place[c] >= 0 && program_.chunk[c] >= 0)
                first.emplace(key(c, program_.chunk[c]), c);
        for (std::size_t c = 0; c < cells_.size(); ++c) {
            if (program_.result_place[c] < 0 || cells_[c].chunk == program_.result[c]) continue;
            if (cells_[c].chunk >= 0)
                show_under(program_.result_place[c], c);
            else if (const auto found = first.find(key(c, program_.result[c]));
                     found != first.end())
                show_under(program_.place[found->second], found->second);
        }
    }

    // What a cell ends with lies under this name of it, too.
    void show_under(std::int32_t name, std::size_t cell) {
        if (cells_[cell].place == name) return;
        push(-1, cells_[cell], program_.npu[cell], {}, program_.npu[cell], name, false);
        woven_.dep_offsets.push_back(static_cast<std::int64_t>(woven_.deps.size()));
    }

    void push(std::int64_t action, const Cell& from, std::int32_t src, const Cell& to,
              std::int32_t dst, std::int32_t place, bool reduce) {
        woven_.chunk.push_back(from.chunk);
        woven_.src.push_back(src);
        woven_.dst.push_back(dst);
        woven_.src_place.push_back(from.place);
        woven_.dst_place.push_back(place);
        woven_.reduce.push_back(reduce);
        woven_.action.push_back(action);
        woven_.before.push_back(to.chunk);
    }

    void put(std::int64_t action, Cell& from, std::int32_t src, Cell& to, std::int32_t dst,
             std::int32_t place, bool reduce) {
        const auto row = static_cast<std::int64_t>(woven_.chunk.size());
        push(action, from, src, to, dst, place, reduce);
        const bool adds = reduce && to.chunk >= 0;
        causes_.push_back({from.writer, adds ? to.writer : -1});
        if (first_row_[action] < 0) first_row_[action] = row;
        last_row_[action] = row;
        wait_for_hazards(row, to, adds);
        wait_for_wishes(row, action);
        woven_.dep_offsets.push_back(static_cast<std::int64_t>(woven_.deps.size()));
        from.readers.push_back(row);
        to.readers.clear();
        to.chunk = adds ? to.chunk : from.chunk;
        to.place = place;
        to.writer = row;
    }

    // What is in the cell must have been read before it goes, and must have come before.
    void wait_for_hazards(std::int64_t row, const Cell& to, bool adds) {
        for (const auto reader : to.readers) wait(row, reader);
        if (!adds && to.readers.empty() && to.writer >= 0) wait(row, to.writer);
    }

    // Of the two rows of a detour, one reads and the other writes; any other row does both.
    void wait_for_wishes(std::int64_t row, std::int64_t action) {
        const bool reads = row == first_row_[action], writes = !reads || !detour_[action];
        for (auto wish = first_wish_[action]; wish >= 0; wish = next_wish_[wish]) {
            const auto earlier = program_.edges.from[wish] / 2;
            if (program_.edges.to[wish] % 2 == 0 ? !reads : !writes) continue;
            if (last_row_[earlier] >= 0 && earlier != action) wait(row, last_row_[earlier]);
        }
    }

    void wait(std::int64_t row, std::int64_t earlier) {
        const auto begin = woven_.deps.begin() + woven_.dep_offsets.back();
        if (std::find(begin, woven_.deps.end(), earlier) != woven_.deps.end()) return;
        if (!flows(earlier, row)) woven_.deps.push_back(earlier);
    }

    // Whether data flow already makes `row` wait for `earlier`. A search that takes too long says
    // no: a dependency too many does no harm.
    bool flows(std::int64_t earlier, std::int64_t row) {
        constexpr int most_visits = 4096;
        stack_.assign(1, row);
        for (int visits = 0; !stack_.empty() && visits < most_visits; ++visits) {
            const auto at = stack_.back();
            stack_.pop_back();
            for (const auto cause : causes_[at]) {
                if (cause == earlier) return true;
                if (cause > earlier) stack_.push_back(cause);
            }
        }
        return false;
    }

    const Program& program_;
    const std::vector<std::uint8_t>& detour_;
    std::vector<Cell> cells_;
    std::vector<Cell> flying_;  // values of detours, by action
    std::vector<std::int32_t> free_slot_;
    std::vector<std::int64_t> first_row_, last_row_;
    std::vector<std::int64_t> first_wish_, next_wish_;  // edges: of an action that waits, by edge
    std::vector<std::array<std::int64_t, 2>> causes_;   // rows whose data each row needs
    std::vector<std::int64_t> stack_;
    Linearized woven_;
};

}  // namespace

Linearized linearize(const Program& program) {
    Order order(program.events, program.actions(), program.chains, program.edges);
    Linearized failed;
    if (order.has_cycle()) {
        failed.fault = {Wrong::cycle, order.cycle(), -1};
        return failed;
    }
    Walk walk(program, order);
    failed.fault = walk.run();
    if (failed.fault.what != Wrong::nothing) return failed;
    return Weaver(program, walk.detour).run(order.sequence());
}

}  // namespace weft::program
