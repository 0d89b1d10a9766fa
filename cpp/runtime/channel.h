// A way to one other rank: bytes in order, either way, never blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::runtime {

using Clock = std::chrono::steady_clock;

class Channel {
  public:
    virtual ~Channel() = default;
    // Takes bytes to send; gives how many it had room for.
    virtual std::size_t write(std::span<const std::byte> bytes) = 0;
    // Some of the bytes that have come, in one piece, of which at least `least` if they are there;
    // they stay until they are consumed. Empty: none are there now.
    virtual std::span<const std::byte> peek(std::size_t least) = 0;
    virtual void consume(std::size_t bytes) = 0;
    // Bytes that have come, put where they belong; gives how many.
    virtual std::size_t read(std::span<std::byte> into) = 0;
    // The other end is gone: nothing more will come, or be taken.
    virtual bool closed() const = 0;
};

// The channels of a rank, and how to wait until one of them may go on.
class Transport {
  public:
    virtual ~Transport() = default;
    virtual Channel& channel(std::int32_t peer) = 0;
    // What is asked for between two looks at all channels, so that nothing in between is missed.
    virtual void prepare() = 0;
    // Waits until something may have changed since `prepare`, or until then. Gives whether there
    // is news of another kind, which the caller must look at.
    virtual bool wait(Clock::time_point until) = 0;
};

}  // namespace weft::runtime
