// Channels whose bytes somebody else carries: what is written waits to be taken, what comes is put.
#pragma once

#include <memory>
#include <vector>

#include "runtime/channel.h"

namespace weft::runtime {

class Pipe;

class Pipes : public Transport {
  public:
    // `room` bytes of each direction of a channel are kept at most.
    Pipes(std::int32_t ranks, std::size_t room);
    ~Pipes() override;
    Pipes(const Pipes&) = delete;

    Channel& channel(std::int32_t peer) override;
    void prepare() override {}
    // Nothing changes by itself: the carrier has to work.
    bool wait(Clock::time_point) override { return true; }

    // Takes what waits to be sent to a peer, at most as much as there is room for; gives how much.
    std::size_t take(std::int32_t peer, std::span<std::byte> into);
    // Puts what came from a peer; gives how much there was room for.
    std::size_t put(std::int32_t peer, std::span<const std::byte> bytes);

  private:
    Pipe& pipe(std::int32_t peer);

    std::vector<std::unique_ptr<Pipe>> pipes_;
};

}  // namespace weft::runtime
