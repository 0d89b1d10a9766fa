#include "runtime/sockets.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace weft::runtime {

class Socket : public Channel {
  public:
    explicit Socket(int descriptor) : descriptor_(descriptor) {
        const int flags = ::fcntl(descriptor, F_GETFL);
        if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0)
            throw std::system_error(errno, std::generic_category(), "socket");
    }

    std::size_t write(std::span<const std::byte> bytes) override {
        std::size_t sent = 0;
        while (writable_ && sent < bytes.size()) {
            const auto n =
                ::send(descriptor_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
            if (n > 0)
                sent += static_cast<std::size_t>(n);
            else
                stopped(writable_);
        }
        return sent;
    }

    std::span<const std::byte> peek(std::size_t least) override {
        if (kept() < least) {
            std::memmove(buffer_.data(), buffer_.data() + begin_, kept());
            end_ -= begin_;
            begin_ = 0;
            while (kept() < least) {
                const auto n = receive({buffer_.data() + end_, buffer_.size() - end_});
                if (n == 0) return {};
                end_ += n;
            }
        }
        return {buffer_.data() + begin_, kept()};
    }

    void consume(std::size_t bytes) override { begin_ += bytes; }

    std::size_t read(std::span<std::byte> into) override {
        const std::size_t had = std::min(kept(), into.size());
        std::memcpy(into.data(), buffer_.data() + begin_, had);
        begin_ += had;
        std::size_t n = had;
        while (n < into.size()) {
            const auto more = receive(into.subspan(n));
            if (more == 0) break;
            n += more;
        }
        return n;
    }

    bool closed() const override { return closed_; }

    void woken(std::uint32_t events) {
        readable_ |= (events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0;
        writable_ |= (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
    }

  private:
    std::size_t kept() const { return end_ - begin_; }

    std::size_t receive(std::span<std::byte> into) {
        while (readable_) {
            const auto n = ::recv(descriptor_, into.data(), into.size(), 0);
            if (n > 0) return static_cast<std::size_t>(n);
            if (n == 0)
                closed_ = true, readable_ = false;
            else
                stopped(readable_);
        }
        return 0;
    }

    void stopped(bool& able) {
        if (errno == EINTR) return;
        able = false;
        if (errno != EAGAIN && errno != EWOULDBLOCK) closed_ = true;
    }

    int descriptor_;
    bool readable_ = true, writable_ = true, closed_ = false;
    std::array<std::byte, 1 << 16> buffer_;
    std::size_t begin_ = 0, end_ = 0;
};

Sockets::Sockets(const std::vector<int>& watched) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) throw std::system_error(errno, std::generic_category(), "epoll");
    for (const int descriptor : watched) watch(descriptor, EPOLLIN | EPOLLET, nullptr);
}

void Sockets::add(std::int32_t peer, int descriptor) {
    if (peer < 0 || peer > 1 << 20) throw std::out_of_range("no such rank");
    const auto place = static_cast<std::size_t>(peer);
    if (channels_.size() <= place) channels_.resize(place + 1);
    if (channels_[place]) throw std::invalid_argument("this rank is connected already");
    auto channel = std::make_unique<Socket>(descriptor);
    watch(descriptor, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, channel.get());
    channels_[place] = std::move(channel);
}

void Sockets::watch(int descriptor, std::uint32_t events, Socket* channel) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = channel;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0)
        throw std::system_error(errno, std::generic_category(), "epoll");
}

Sockets::~Sockets() { ::close(epoll_); }

Channel& Sockets::channel(std::int32_t peer) {
    if (peer < 0 || static_cast<std::size_t>(peer) >= channels_.size() || !channels_[peer])
        throw std::out_of_range("no connection to this rank");
    return *channels_[peer];
}

bool Sockets::wait(Clock::time_point until) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    std::array<epoll_event, 64> events;
    const int n = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()),
                               static_cast<int>(std::clamp<long>(left + 1, 0, 1 << 20)));
    bool news = false;
    for (int i = 0; i < n; ++i) {
        if (events[i].data.ptr)
            static_cast<Socket*>(events[i].data.ptr)->woken(events[i].events);
        else
            news = true;
    }
    return news;
}

}  // namespace weft::runtime
