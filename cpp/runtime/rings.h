// Channels through shared memory: a ring of bytes for each ordered pair of ranks.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/channel.h"

namespace weft::runtime {

class Ring;

// In the shared memory, which is zero at first: a bell a rank, then the rings.
//
// Who has written to a ring, or read from it, rings the bell of the other end. A rank that finds
// nothing to do looks at its bell for a while and then sleeps on it.
class Rings : public Transport {
  public:
    static std::size_t bytes(std::int32_t ranks, std::size_t ring_bytes);

    // The memory stays the caller's. `ring_bytes` is a power of two. Arrivals at the descriptors
    // that are `watched` are news.
    Rings(std::span<std::byte> memory, std::int32_t rank, std::int32_t ranks,
          std::size_t ring_bytes, std::vector<int> watched);
    ~Rings() override;
    Rings(const Rings&) = delete;

    Channel& channel(std::int32_t peer) override;
    void prepare() override;
    bool wait(Clock::time_point until) override;

  private:
    struct Bell;
    Bell& bell_;
    std::uint32_t heard_ = 0;
    int fewest_looks_, looks_;
    std::vector<int> watched_;
    std::vector<std::unique_ptr<Ring>> channels_;

    friend class Ring;
};

}  // namespace weft::runtime
