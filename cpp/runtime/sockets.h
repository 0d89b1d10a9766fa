// Channels over connected stream sockets, one a peer.
#pragma once

#include <memory>
#include <vector>

#include "runtime/channel.h"

namespace weft::runtime {

class Socket;

class Sockets : public Transport {
  public:
    // Descriptors stay the caller's, who keeps them open; arrivals at those that are `watched` are
    // news.
    explicit Sockets(const std::vector<int>& watched);
    ~Sockets() override;
    Sockets(const Sockets&) = delete;

    void add(std::int32_t peer, int descriptor);

    Channel& channel(std::int32_t peer) override;
    void prepare() override {}
    bool wait(Clock::time_point until) override;

  private:
    void watch(int descriptor, std::uint32_t events, Socket* channel);

    int epoll_;
    std::vector<std::unique_ptr<Socket>> channels_;
};

}  // namespace weft::runtime
