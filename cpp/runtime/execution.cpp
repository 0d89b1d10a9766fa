#include "runtime/execution.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

namespace weft::runtime {
namespace {

constexpr std::size_t a_turn = 1 << 18;  // bytes of a channel before the others have their turn

std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
        .count();
}

}  // namespace

Execution::Execution(const Program& program, std::vector<std::span<std::byte>> buffers, Type type,
                     Op op, Transport& transport, const Key& key, bool traced)
    : program_(program), buffers_(std::move(buffers)), type_(type), op_(op), width_(size_of(type)),
      transport_(transport), key_(key), over_(program.size()), left_(program.size()) {
    check();
    const auto most = [](std::span<const std::int32_t> numbers) {
        return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end()) + 1;
    };
    peers_.resize(static_cast<std::size_t>(std::max(0, most(program.peer))));
    const auto cells =
        static_cast<std::size_t>(std::max({0, most(program.read_cell), most(program.write_cell)}));
    written_.resize(cells);
    read_.resize(cells);
    std::map<std::int32_t, Queue> sends, receives;
    for (std::size_t i = 0; i < program.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i);
        if (static_cast<What>(program.what[i]) == What::local) {
            locals_.rows.push_back(row);
            continue;
        }
        const bool sending = static_cast<What>(program.what[i]) == What::send;
        Peer& peer = peers_.at(static_cast<std::size_t>(program.peer[i]));
        peer.channel = &transport.channel(program.peer[i]);
        (sending ? peer.sends : peer.receives) = true;
        (sending ? sends : receives)[program.queue[i]].rows.push_back(row);
    }
    for (auto& [_, queue] : sends) sends_.push_back(std::move(queue));
    for (auto& [_, queue] : receives) receives_.push_back(std::move(queue));
    if (traced) begun_.resize(program.size()), ended_.resize(program.size());
}

void Execution::check() const {
    const auto inside = [&](std::int32_t buffer, std::int64_t first, std::int64_t length) {
        const auto& whole = buffers_.at(static_cast<std::size_t>(buffer));
        const auto room = static_cast<std::int64_t>(whole.size() / width_);
        if (first < 0 || length < 0 || first > room || length > room - first)
            throw std::out_of_range("a row leaves its buffer");
    };
    const Program& p = program_;
    for (std::size_t i = 0; i < p.size(); ++i) {
        const auto what = static_cast<What>(p.what[i]);
        if (what != What::receive) inside(p.from_buffer[i], p.from[i], p.length[i]);
        if (what == What::send) continue;
        inside(p.to_buffer[i], p.to[i], p.length[i]);
        if (p.combines[i]) inside(p.base_buffer[i], p.base[i], p.length[i]);
    }
    for (const auto row : p.after)
        if (row < 0 || static_cast<std::size_t>(row) >= p.size())
            throw std::out_of_range("a row waits for none of the program");
}

State Execution::advance(Clock::time_point until) {
    while (state_ == State::running) {
        transport_.prepare();
        bool moving = greet();
        moving |= work_locally();
        for (Queue& queue : sends_) moving |= send(queue);
        for (Queue& queue : receives_) moving |= receive(queue);
        if (state_ != State::running) break;
        const bool greeted = std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
            return !peer.sends || peer.said == sizeof(Key);
        });
        if (left_ == 0 && greeted) {
            state_ = State::done;
        } else if (!moving) {
            if (Clock::now() >= until || transport_.wait(until)) break;
        }
    }
    return state_;
}

// Each direction of a channel that is used begins with the key.
bool Execution::greet() {
    bool moving = false;
    for (std::size_t number = 0; number < peers_.size(); ++number) {
        Peer& peer = peers_[number];
        if (peer.sends && peer.said < sizeof(Key)) {
            const auto n = peer.channel->write(std::span(key_).subspan(peer.said));
            peer.said += n;
            moving |= n > 0;
        }
        if (peer.receives && peer.heard < sizeof(Key)) {
            const auto there = peer.channel->peek(1);
            const auto n = std::min(there.size(), sizeof(Key) - peer.heard);
            if (n == 0) continue;
            if (std::memcmp(there.data(), key_.data() + peer.heard, n) != 0) {
                state_ = State::disagreeing;
                peer_ = static_cast<std::int32_t>(number);
                return false;
            }
            peer.channel->consume(n);
            peer.heard += n;
            moving = true;
        }
    }
    return moving;
}

bool Execution::send(Queue& queue) {
    bool moving = false;
    std::size_t turn = 0;
    while (!queue.over() && turn < a_turn) {
        const std::int64_t row = queue.row();
        Peer& peer = peers_[static_cast<std::size_t>(program_.peer[row])];
        if (peer.said < sizeof(Key)) break;
        if (queue.bytes == 0) {
            if (!may_read(row)) break;
            begin(row);
        }
        const auto all = program_.length[row] * static_cast<std::int64_t>(width_);
        if (queue.bytes < all) {
            const std::byte* const first = at(program_.from_buffer[row], program_.from[row]);
            const auto left = std::min(static_cast<std::size_t>(all - queue.bytes), a_turn);
            const auto n = peer.channel->write({first + queue.bytes, left});
            if (n == 0 && peer.channel->closed()) {
                state_ = State::closed;
                peer_ = program_.peer[row];
            }
            if (n == 0) break;
            queue.bytes += static_cast<std::int64_t>(n);
            turn += n;
            moved_ += n;
            moving = true;
        }
        moving |= end_if_whole(queue, all);
    }
    return moving;
}

bool Execution::receive(Queue& queue) {
    bool moving = false;
    std::size_t turn = 0;
    while (!queue.over() && turn < a_turn) {
        const std::int64_t row = queue.row();
        Peer& peer = peers_[static_cast<std::size_t>(program_.peer[row])];
        if (peer.heard < sizeof(Key)) {
            if (peer.channel->closed()) state_ = State::closed, peer_ = program_.peer[row];
            break;
        }
        if (queue.bytes == 0 && !may_write(row)) break;
        const auto all = program_.length[row] * static_cast<std::int64_t>(width_);
        if (queue.bytes < all) {
            const auto n = take(row, queue.bytes, *peer.channel, a_turn - turn);
            if (n == 0 && peer.channel->closed()) {
                state_ = State::closed;
                peer_ = program_.peer[row];
            }
            if (n == 0) break;
            begin(row);
            queue.bytes += n;
            turn += static_cast<std::size_t>(n);
            moved_ += static_cast<std::uint64_t>(n);
            moving = true;
        }
        moving |= end_if_whole(queue, all);
    }
    return moving;
}

// Takes what has come of a row after its first `done` bytes; gives how many bytes that was.
std::int64_t Execution::take(std::int64_t row, std::int64_t done, Channel& channel,
                             std::size_t most) {
    const auto width = static_cast<std::int64_t>(width_);
    const auto left = static_cast<std::size_t>(program_.length[row] * width - done);
    std::byte* const to = at(program_.to_buffer[row], program_.to[row]) + done;
    if (!program_.combines[row])
        return static_cast<std::int64_t>(
            channel.read({to, std::min(left, std::max(most, width_))}));
    const auto there = channel.peek(width_);
    const std::size_t count = std::min(there.size(), left) / width_;
    if (count == 0) return 0;
    const std::byte* const base = at(program_.base_buffer[row], program_.base[row]) + done;
    combine(type_, op_, to, base, there.data(), count);
    channel.consume(count * width_);
    return static_cast<std::int64_t>(count) * width;
}

// Copies and sums on this rank, in pieces, so that what others wait for is not held up.
bool Execution::work_locally() {
    std::int64_t turn = static_cast<std::int64_t>(a_turn / width_);
    bool moving = false;
    while (!locals_.over() && turn > 0) {
        const std::int64_t row = locals_.row();
        std::int64_t& done = locals_.bytes;  // in elements here
        if (done == 0) {
            if (!may_read(row) || !may_write(row)) break;
            begin(row);
        }
        const std::int64_t count = std::min(program_.length[row] - done, turn);
        const auto bytes = static_cast<std::size_t>(count) * width_;
        const std::byte* const from = at(program_.from_buffer[row], program_.from[row] + done);
        std::byte* const to = at(program_.to_buffer[row], program_.to[row] + done);
        if (program_.combines[row])
            combine(type_, op_, to, at(program_.base_buffer[row], program_.base[row] + done), from,
                    static_cast<std::size_t>(count));
        else if (from != to)
            std::memmove(to, from, bytes);
        turn -= std::max<std::int64_t>(count, 1);
        done += count;
        moved_ += bytes;
        moving = true;
        if (done == program_.length[row]) {
            end(row);
            ++locals_.next;
            done = 0;
        }
    }
    return moving;
}

bool Execution::may_read(std::int64_t row) const {
    const std::int32_t cell = program_.read_cell[row];
    if (cell >= 0 && written_[cell] < program_.read_after[row]) return false;
    for (auto i = program_.after_offsets[row]; i < program_.after_offsets[row + 1]; ++i)
        if (!over_[program_.after[i]]) return false;
    return true;
}

bool Execution::may_write(std::int64_t row) const {
    const std::int32_t cell = program_.write_cell[row];
    return cell < 0 || (written_[cell] >= program_.written_after[row] &&
                        read_[cell] >= program_.free_after[row]);
}

void Execution::begin(std::int64_t row) {
    if (!begun_.empty() && begun_[row] == 0) begun_[row] = now();
}

void Execution::end(std::int64_t row) {
    if (program_.read_cell[row] >= 0) ++read_[program_.read_cell[row]];
    if (program_.write_cell[row] >= 0) ++written_[program_.write_cell[row]];
    over_[row] = 1;
    --left_;
    ++moved_;
    begin(row);  // of what is empty nothing comes first
    if (!ended_.empty()) ended_[row] = now();
}

// Ends the first row of a queue if all its bytes have moved.
bool Execution::end_if_whole(Queue& queue, std::int64_t all) {
    if (queue.bytes != all) return false;
    end(queue.row());
    ++queue.next;
    queue.bytes = 0;
    return true;
}

std::byte* Execution::at(std::int32_t buffer, std::int64_t element) const {
    return buffers_[buffer].data() + element * static_cast<std::int64_t>(width_);
}

std::vector<std::int64_t> Execution::waiting() const {
    std::vector<std::int64_t> rows;
    if (!locals_.over()) rows.push_back(locals_.row());
    for (const auto* queues : {&sends_, &receives_})
        for (const Queue& queue : *queues)
            if (!queue.over()) rows.push_back(queue.row());
    return rows;
}

}  // namespace weft::runtime
