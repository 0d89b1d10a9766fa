// One rank's run of a program: a state machine that never blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/channel.h"
#include "runtime/elements.h"
#include "runtime/program.h"

namespace weft::runtime {

// Of this run among all runs, its plan and its data: what both ends of a channel say first.
using Key = std::array<std::byte, 32>;

enum class State { running, done, disagreeing, closed };

class Execution {
  public:
    // The program's columns and the buffers must outlive it. Throws if a row leaves a buffer.
    Execution(const Program& program, std::vector<std::span<std::byte>> buffers, Type type, Op op,
              Transport& transport, const Key& key, bool traced);

    // Works until all is done, something is wrong, there is news, or that time has come.
    State advance(Clock::time_point until);

    std::int32_t peer() const { return peer_; }     // with whom something is wrong
    std::uint64_t moved() const { return moved_; }  // a sign of life: bytes and rows so far
    std::vector<std::int64_t> waiting() const;      // the first row of each queue that waits
    const std::vector<std::int64_t>& begun() const { return begun_; }  // ns; empty if not traced
    const std::vector<std::int64_t>& ended() const { return ended_; }

  private:
    // Rows of one kind in their order, and how far they are.
    struct Queue {
        std::vector<std::int64_t> rows;
        std::size_t next = 0;
        std::int64_t bytes = 0;  // of the next row, so far

        bool over() const { return next == rows.size(); }
        std::int64_t row() const { return rows[next]; }
    };
    struct Peer {
        Channel* channel = nullptr;
        bool sends = false, receives = false;
        std::size_t said = 0, heard = 0;  // of the key
    };

    void check() const;
    bool greet();
    bool send(Queue& queue);
    bool receive(Queue& queue);
    std::int64_t take(std::int64_t row, std::int64_t done, Channel& channel, std::size_t most);
    bool work_locally();
    bool may_read(std::int64_t row) const;
    bool may_write(std::int64_t row) const;
    void end(std::int64_t row);
    bool end_if_whole(Queue& queue, std::int64_t all);
    void begin(std::int64_t row);
    std::byte* at(std::int32_t buffer, std::int64_t element) const;

    Program program_;
    std::vector<std::span<std::byte>> buffers_;
    Type type_;
    Op op_;
    std::size_t width_;
    Transport& transport_;
    Key key_;
    std::vector<Peer> peers_;
    std::vector<Queue> sends_, receives_;
    Queue locals_;
    std::vector<std::int32_t> written_, read_;  // of each cell
    std::vector<std::uint8_t> over_;            // of each row
    std::size_t left_ = 0;
    std::uint64_t moved_ = 0;
    std::int32_t peer_ = -1;
    State state_ = State::running;
    std::vector<std::int64_t> begun_, ended_;
};

}  // namespace weft::runtime
